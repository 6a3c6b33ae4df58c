// What all CUDA kernels share: loads of 16 bytes as floats, warp sums, launches with programmatic dependent launch.
#pragma once

#include "kernels/cuda/dtype.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace llmrt::cuda {

// --- conversions ----------------------------------------------------------------------------------------------------

__device__ __forceinline__ float to_float(float v) { return v; }
__device__ __forceinline__ float to_float(__half v) { return __half2float(v); }
__device__ __forceinline__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }

template <typename T> __device__ __forceinline__ T from_float(float v);
template <> __device__ __forceinline__ float from_float<float>(float v) { return v; }
template <> __device__ __forceinline__ __half from_float<__half>(float v) { return __float2half_rn(v); }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float v) { return __float2bfloat16_rn(v); }

// Eight neighbouring elements, 16-byte aligned for two-byte types and 32 for f32 (two loads).
template <typename T> struct Eight {
  float v[8];
  __device__ __forceinline__ void load(const T *p) {
    if constexpr (sizeof(T) == 2) {
      const uint4 raw = *reinterpret_cast<const uint4 *>(p);
      const T *e = reinterpret_cast<const T *>(&raw);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        v[i] = to_float(e[i]);
    } else {
      const float4 a = reinterpret_cast<const float4 *>(p)[0], b = reinterpret_cast<const float4 *>(p)[1];
      v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    }
  }
  __device__ __forceinline__ void store(T *p) const {
    if constexpr (sizeof(T) == 2) {
      uint4 raw;
      T *e = reinterpret_cast<T *>(&raw);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        e[i] = from_float<T>(v[i]);
      *reinterpret_cast<uint4 *>(p) = raw;
    } else {
      reinterpret_cast<float4 *>(p)[0] = make_float4(v[0], v[1], v[2], v[3]);
      reinterpret_cast<float4 *>(p)[1] = make_float4(v[4], v[5], v[6], v[7]);
    }
  }
};

// Policies of L2, as copies to shared memory take them: what gives way first, and what stays.
inline constexpr uint64_t kEvictFirst = 0x12F0000000000000, kEvictLast = 0x14F0000000000000, kEvictNormal = 0x1000000000000000;

// --- sums -----------------------------------------------------------------------------------------------------------

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1)
    v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

// Who works together in a block: all threads, or the first `count`, whole warps.
struct WholeBlock {
  __device__ __forceinline__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ __forceinline__ void sync() const { __syncthreads(); }
};
struct FirstThreads {
  int count;
  __device__ __forceinline__ int threads() const { return count; }
  __device__ __forceinline__ void sync() const { asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory"); }
};

// Sum over the block, or the team, the same value in every thread. `scratch` has 33 floats; all threads must call.
template <typename Team = WholeBlock> __device__ __forceinline__ float block_sum(float v, float *scratch, Team team = {}) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (team.threads() + 31) >> 5;
  v = warp_sum(v);
  if (lane == 0)
    scratch[warp] = v;
  team.sync();
  if (warp == 0) {
    float total = warp_sum(lane < warps ? scratch[lane] : 0.0f);
    if (lane == 0)
      scratch[32] = total;
  }
  team.sync();
  return scratch[32];
}

// --- launches -------------------------------------------------------------------------------------------------------

// Waits until the kernel launched before this one on the stream has finished and its writes are visible. Every kernel
// calls it before it touches anything that another kernel writes; what comes before (weights) may be loaded early.
__device__ __forceinline__ void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
// Lets the next kernel of the stream start its part in front of wait_for_previous(). Kernels call it first of all: the
// next one still waits for this one's end, and this one for the end of the one before, so that weights of several kernels
// ahead are on their way while a chain of short kernels runs.
__device__ __forceinline__ void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// Whether 9.0 in the list of architectures is 90a, whose code runs on 9.x alone.
#ifdef LLMRT_HOPPER
inline constexpr bool kHopperAlone = true;
#else
inline constexpr bool kHopperAlone = false;
#endif
// The major capability of the code that a device runs: of what was built, the newest that is not newer than the device. Code
// for an older one, which the driver translates, lacks what __CUDA_ARCH__ keeps from it.
constexpr int built_major(std::initializer_list<int> built, bool hopper_alone, int capability) { // 900: 9.0
  int newest = 0;
  for (const int arch : built)
    if (arch <= capability && !(hopper_alone && arch == 900 && capability / 100 != 9) && arch > newest)
      newest = arch;
  return newest / 100;
}
static_assert(built_major({800, 900, 1000}, true, 900) == 9 && built_major({800, 900, 1000}, true, 1200) == 10);
static_assert(built_major({800, 900}, true, 1000) == 8 && built_major({800, 900}, false, 1000) == 9 && built_major({900}, true, 890) == 0);

// What launches need to know of the current device; asked once.
struct DeviceLimits {
  int sms;
  int major; // of the code that it runs
  int most_cluster; // blocks of a cluster: 8 everywhere, 16 on the large devices of Hopper and Blackwell, where a kernel allows it
  size_t shared_per_sm, shared_per_block;
};
inline const DeviceLimits &device_limits() {
  constexpr int kMost = 64;
  static const struct All {
    DeviceLimits of[kMost];
    All() {
      int count = 0;
      cudaGetDeviceCount(&count);
      for (int d = 0; d < count && d < kMost; ++d) {
        int shared = 0, major = 0, minor = 0;
        cudaDeviceGetAttribute(&of[d].sms, cudaDevAttrMultiProcessorCount, d);
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, d);
        of[d].major = built_major({__CUDA_ARCH_LIST__}, kHopperAlone, major * 100 + minor * 10); // nvcc's list
        of[d].most_cluster = major == 9 || major == 10 ? 16 : 8;
        cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, d);
        of[d].shared_per_sm = static_cast<size_t>(shared);
        cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, d);
        of[d].shared_per_block = static_cast<size_t>(shared);
      }
    }
  } all;
  int device = 0;
  cudaGetDevice(&device);
  return all.of[device < kMost ? device : 0];
}

// A launch, or what prepares one, that failed is an error at once: an operation that did not run must never look like one
// that did.
inline void require(cudaError_t status, const char *what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("a CUDA kernel could not be launched (") + what + "): " + cudaGetErrorString(status));
}

// Calls f once for each device, when that is the current one; `done` has a bit for each.
template <typename F> void once_a_device(std::atomic<uint64_t> &done, F &&f) {
  int device = 0;
  require(cudaGetDevice(&device), "device");
  const uint64_t bit = uint64_t{1} << (device & 63);
  if (done.load(std::memory_order_acquire) & bit)
    return;
  f();
  done.fetch_or(bit, std::memory_order_release);
}

// Lets kKernel use all the shared memory of a block that the current device has, once for each device. The limit belongs to
// the function, not to the launch: set anew for every launch, ranks that share a device would set it under each other's feet.
template <auto kKernel> void allow_shared_memory() {
  static std::atomic<uint64_t> allowed{0};
  once_a_device(allowed, [] {
    cudaFuncAttributes attributes;
    require(cudaFuncGetAttributes(&attributes, kKernel), "attributes");
    const size_t most = device_limits().shared_per_block - attributes.sharedSizeBytes;
    require(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)), "shared memory");
  });
}

// Has kKernel run with the largest part of a multiprocessor's memory as shared memory, though it uses little. That division
// changes only while a multiprocessor is idle: between two kernels that need much shared memory, one that leaves it as it is
// lets the other start early.
template <auto kKernel> void keep_shared_memory() {
  static std::atomic<uint64_t> kept{0};
  once_a_device(kept, [] {
    require(cudaFuncSetAttribute(kKernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "shared memory");
  });
}

// Launches with permission to start before the previous kernel has ended (programmatic dependent launch), in clusters
// along x where `cluster` is more than one. The kernel must call wait_for_previous(). Throws where it cannot be launched.
template <typename... Params, typename... Args>
void launch_cluster(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared, unsigned cluster, cudaStream_t stream,
                    Args &&...args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = device_limits().major >= 9; // else wait_for_previous() is empty
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = cluster;
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  config.attrs = attributes;
  config.numAttrs = cluster > 1 ? 2 : 1;
  require(cudaLaunchKernelEx(&config, kernel, Params(std::forward<Args>(args))...), "launch");
}
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream, Args &&...args) {
  launch_cluster(kernel, grid, block, shared, 1, stream, std::forward<Args>(args)...);
}

// Calls f with a value of the C++ type of `t`.
template <typename F> void with_type(DType t, F &&f) {
  switch (t) {
  case DType::f32: f(float()); break;
  case DType::f16: f(__half()); break;
  case DType::bf16: f(__nv_bfloat16()); break;
  }
}

template <typename T> bool aligned16(const void *p, int64_t stride) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0 && stride * sizeof(T) % 16 == 0;
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace llmrt::cuda
