// What racecheck makes of a block that writes into another's shared memory, on top of what that one has filled before, with
// cluster.sync() in between: nothing where stores of its own filled it, a write/write hazard where copies of its own
// (cp.async) did, though every thread has waited for its copies before it came to the cluster's barrier. The clustered decode
// attention is of the second kind; tools/gpu-sanitize.sh runs both, so that it is known when the tool learns.
//
//   cluster_after_copy stored | copied
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

namespace {

constexpr int kBlocks = 4, kThreads = 128, kShare = kThreads / kBlocks;

// Fills what others will write to, two words a thread; then block b sends its share of sums to every block's half b … and all
// add up what they were sent.
template <bool kCopied> __global__ void exchange(float *out, const float *in) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) float words[]; // [2, kThreads]
  auto cluster = cooperative_groups::this_cluster();
  const int block = static_cast<int>(cluster.block_rank()), thread = static_cast<int>(threadIdx.x);
  if constexpr (kCopied) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(words + 2 * thread));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;\n\tcp.async.commit_group;\n\tcp.async.wait_group 0;" ::"r"(to),
                 "l"(in + 2 * thread)
                 : "memory");
  } else {
    words[2 * thread] = in[2 * thread], words[2 * thread + 1] = in[2 * thread + 1];
  }
  __syncthreads();
  float sum = words[(2 * thread + 40) % (2 * kThreads)];
  cluster.sync(); // all have read; from here on blocks write over each other's
  *cluster.map_shared_rank(&words[kThreads + block * kShare + thread % kShare], thread / kShare) = sum;
  cluster.sync();
  for (int from = 0; from < kBlocks; ++from)
    sum += words[kThreads + from * kShare + thread % kShare];
  out[blockIdx.x * kThreads + thread] = sum;
#endif
}

} // namespace

int main(int count, char **arguments) {
  const bool copied = count == 2 && std::strcmp(arguments[1], "copied") == 0;
  if (!copied && (count != 2 || std::strcmp(arguments[1], "stored") != 0)) {
    std::fprintf(stderr, "usage: cluster_after_copy stored|copied\n");
    return 2;
  }
  float *out = nullptr, *in = nullptr;
  cudaMalloc(&out, sizeof(float) * kBlocks * kThreads);
  cudaMalloc(&in, sizeof(float) * 2 * kThreads);
  cudaMemset(in, 0, sizeof(float) * 2 * kThreads);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kBlocks, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = kBlocks, config.blockDim = kThreads, config.dynamicSmemBytes = sizeof(float) * 2 * kThreads;
  config.attrs = &cluster, config.numAttrs = 1;
  const float *from = in;
  const cudaError_t launched = copied ? cudaLaunchKernelEx(&config, exchange<true>, out, from)
                                      : cudaLaunchKernelEx(&config, exchange<false>, out, from);
  const cudaError_t status = launched == cudaSuccess ? cudaDeviceSynchronize() : launched;
  if (status != cudaSuccess)
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  return status == cudaSuccess ? 0 : 1;
}
