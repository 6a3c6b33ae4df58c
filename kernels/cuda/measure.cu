// Kernels that measure a device: the fastest plain read, and random data for products.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/measure.h"

#include <utility>

namespace llmrt::cuda {

namespace {

__global__ void read_kernel(uint32_t *checksum, const uint4 *data, int64_t n) {
  wait_for_previous();
  uint32_t sum = 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    const uint4 a = data[i], b = data[i + step], c = data[i + 2 * step], d = data[i + 3 * step];
    sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
  }
  for (; i < n; i += step)
    sum ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
  atomicXor(checksum, sum);
}

template <typename T> __global__ void fill_kernel(T *data, int64_t n, uint32_t seed) {
  wait_for_previous();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    uint32_t x = static_cast<uint32_t>(i) * 2654435761u + seed;
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
    data[i] = from_float<T>(static_cast<float>(x >> 8) / 16777216.0f - 0.5f);
  }
}

} // namespace

void read_all(void *checksum, const void *data, int64_t bytes, cudaStream_t stream) {
  launch(read_kernel, dim3(1056), dim3(512), 0, stream, static_cast<uint32_t *>(checksum), static_cast<const uint4 *>(data),
         bytes / 16);
}

void fill_random(void *data, int64_t n, DType type, uint32_t seed, cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using E = decltype(t);
    launch(fill_kernel<E>, dim3(1056), dim3(256), 0, stream, static_cast<E *>(data), n, seed);
  });
}

} // namespace llmrt::cuda
