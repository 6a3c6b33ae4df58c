// Device arrays and random data for the tests of CUDA kernels.
#pragma once

#include "kernels/cuda/kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace llmrt::cuda::testing {

#define ASSERT_CUDA(call)                                                                                              \
  do {                                                                                                                 \
    const cudaError_t status = (call);                                                                                 \
    ASSERT_EQ(status, cudaSuccess) << #call << ": " << cudaGetErrorString(status);                                     \
  } while (0)

// A device copy of host data, with a poisoned guard behind it that check_guard() looks at.
class DeviceBytes {
public:
  explicit DeviceBytes(size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(cudaMalloc(&data_, bytes + kGuard), cudaSuccess);
    EXPECT_EQ(cudaMemset(data_, 0xA5, bytes + kGuard), cudaSuccess);
  }
  DeviceBytes(const void *from, size_t bytes) : DeviceBytes(bytes) {
    EXPECT_EQ(cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceBytes() {
    std::vector<unsigned char> guard(kGuard);
    EXPECT_EQ(cudaMemcpy(guard.data(), static_cast<char *>(data_) + bytes_, kGuard, cudaMemcpyDeviceToHost), cudaSuccess);
    for (unsigned char c : guard)
      if (c != 0xA5) {
        ADD_FAILURE() << "a kernel wrote past the end of a buffer of " << bytes_ << " bytes";
        break;
      }
    cudaFree(data_);
  }
  DeviceBytes(const DeviceBytes &) = delete;
  void *get() const { return data_; }
  template <typename T> T *as() const { return static_cast<T *>(data_); }
  template <typename T> std::vector<T> read() const {
    std::vector<T> host(bytes_ / sizeof(T));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(host.data(), data_, host.size() * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }

private:
  static constexpr size_t kGuard = 256;
  void *data_ = nullptr;
  size_t bytes_;
};

inline std::vector<float> random_floats(size_t n, uint32_t seed, float scale = 1.0f) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float &v : values)
    v = normal(engine);
  return values;
}

inline float round_to(float v, DType t) {
  return t == DType::f32 ? v : t == DType::f16 ? __half2float(__float2half(v)) : __bfloat162float(__float2bfloat16(v));
}

// Host floats as device elements of a type; `values` become what the device holds.
inline std::vector<unsigned char> encode(std::vector<float> &values, DType t) {
  std::vector<unsigned char> bytes(values.size() * dtype_bytes(t));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = round_to(values[i], t);
    if (t == DType::f32) {
      std::memcpy(&bytes[i * 4], &values[i], 4);
    } else if (t == DType::f16) {
      const __half h = __float2half(values[i]);
      std::memcpy(&bytes[i * 2], &h, 2);
    } else {
      const __nv_bfloat16 b = __float2bfloat16(values[i]);
      std::memcpy(&bytes[i * 2], &b, 2);
    }
  }
  return bytes;
}

inline std::vector<float> decode(const std::vector<unsigned char> &bytes, DType t) {
  std::vector<float> values(bytes.size() / dtype_bytes(t));
  for (size_t i = 0; i < values.size(); ++i) {
    if (t == DType::f32) {
      std::memcpy(&values[i], &bytes[i * 4], 4);
    } else if (t == DType::f16) {
      __half h;
      std::memcpy(&h, &bytes[i * 2], 2);
      values[i] = __half2float(h);
    } else {
      __nv_bfloat16 b;
      std::memcpy(&b, &bytes[i * 2], 2);
      values[i] = __bfloat162float(b);
    }
  }
  return values;
}

// Activations on both sides: random, of a type.
struct Tensor {
  std::vector<float> host; // as the device rounds it
  DType type;
  DeviceBytes device;
  Tensor(size_t n, DType t, uint32_t seed, float scale = 1.0f) : Tensor(random_floats(n, seed, scale), t) {}
  Tensor(std::vector<float> values, DType t)
      : host(std::move(values)), type(t), device(encoded(host, t).data(), host.size() * dtype_bytes(t)) {}
  std::vector<float> read() const { return decode(device.read<unsigned char>(), type); }

private:
  static std::vector<unsigned char> encoded(std::vector<float> &v, DType t) { return encode(v, t); }
};

// ‖got − want‖ / ‖want‖; NaN never passes a comparison with a bound.
inline double relative_error(const std::vector<float> &got, const std::vector<double> &want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

// Rounding of the result alone allows this much.
inline double tolerance(DType t) { return t == DType::f32 ? 2e-6 : t == DType::f16 ? 1e-3 : 6e-3; }

inline const DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

// Whether the device takes what is built for sm_90a.
inline bool hopper() {
  cudaDeviceProp prop;
  return cudaGetDeviceProperties(&prop, 0) == cudaSuccess && prop.major == 9;
}

inline double activation(Activation kind, double x) {
  return kind == Activation::silu        ? x / (1 + std::exp(-x))
         : kind == Activation::gelu_tanh ? 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))
                                         : 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

} // namespace llmrt::cuda::testing
