// What racecheck makes of a warp that has a bulk copy fill a place in shared memory again which all its lanes have read, with
// __syncwarp() in between: as the balanced decode attention does it (met), and with a fence of the two proxies in front (fenced).
// tools/gpu-sanitize.sh runs both, so that it is known what the tool asks for.
//
//   refill_after_warp met | fenced
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

namespace {

using namespace llmrt::cuda;

constexpr int kLanes = 32, kTurns = 6;

// A warp: lane i adds up word i + 1 of each of kTurns rows, which come into the same place one after the other.
template <bool kFenced> __global__ void refill(uint32_t *out, const uint32_t *rows) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  __shared__ __align__(128) uint32_t place[kLanes];
  __shared__ __align__(8) uint64_t barrier_word;
  const uint32_t barrier = shared_address(&barrier_word), lane = threadIdx.x;
  const auto fill = [&](int turn) {
    if (lane != 0)
      return;
    barrier_expect(barrier, sizeof(place));
    copy_bulk(shared_address(place), rows + turn * kLanes, sizeof(place), barrier);
  };
  if (lane == 0)
    barrier_init(barrier, 1);
  fence_barriers();
  __syncwarp();
  fill(0);
  uint32_t sum = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    barrier_wait(barrier, turn % 2);
    sum += place[(lane + 1) % kLanes];
    if (kFenced)
      fence_async();
    __syncwarp();
    if (turn + 1 < kTurns)
      fill(turn + 1);
  }
  out[lane] = sum;
#endif
}

} // namespace

int main(int count, char **arguments) {
  const bool fenced = count == 2 && std::strcmp(arguments[1], "fenced") == 0;
  if (!fenced && (count != 2 || std::strcmp(arguments[1], "met") != 0)) {
    std::fprintf(stderr, "usage: refill_after_warp met|fenced\n");
    return 2;
  }
  uint32_t rows[kTurns * kLanes], sums[kLanes], *in = nullptr, *out = nullptr;
  for (int i = 0; i < kTurns * kLanes; ++i)
    rows[i] = static_cast<uint32_t>(i);
  cudaMalloc(&in, sizeof rows);
  cudaMalloc(&out, sizeof sums);
  cudaMemcpy(in, rows, sizeof rows, cudaMemcpyHostToDevice);
  if (fenced)
    refill<true><<<1, kLanes>>>(out, in);
  else
    refill<false><<<1, kLanes>>>(out, in);
  const cudaError_t status = cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost);
  if (status != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    return 1;
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    if (sums[lane] != kTurns * ((lane + 1) % kLanes) + kLanes * kTurns * (kTurns - 1) / 2) {
      std::fprintf(stderr, "lane %u has summed %u\n", lane, sums[lane]);
      return 1;
    }
  return 0;
}
