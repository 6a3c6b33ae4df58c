// What the all-reduces between ranks share: a row in chunks of sixteen bytes, sums of it in f32, and the residual and RMSNorm that
// may follow.
#pragma once

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rank_sum.h"

namespace llmrt::cuda {

constexpr int kChunk = 16;              // bytes
constexpr int kMostRowChunks = 4 * 1024; // four of each thread

template <typename T> struct Chunk {
  static constexpr int kElements = kChunk / sizeof(T);
  float v[kElements];
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kElements; ++i)
      v[i] = 0;
  }
  __device__ __forceinline__ void add(uint4 raw) {
    const T *e = reinterpret_cast<const T *>(&raw);
#pragma unroll
    for (int i = 0; i < kElements; ++i)
      v[i] += to_float(e[i]);
  }
  __device__ __forceinline__ uint4 bits() const {
    uint4 raw;
    T *e = reinterpret_cast<T *>(&raw);
#pragma unroll
    for (int i = 0; i < kElements; ++i)
      e[i] = from_float<T>(v[i]);
    return raw;
  }
};

// Which chunk of a row a place of a thread is: in order, as long as no other is said (lines.cuh).
struct InOrder {
  static __device__ __forceinline__ int chunk_at(int place) { return place; }
};

// A block's row of a sum over ranks, which a team of its threads works on. kNorm: with residual and norm. kEach: places of a thread, a
// team apart.
template <typename T, bool kNorm, int kEach, typename Places = InOrder, typename Team = WholeBlock> class SummedRow {
public:
  static constexpr int kPlacesOfThread = kEach;
  Chunk<T> sum[kEach];
  const int chunks;
  int64_t row;

  __device__ __forceinline__ SummedRow(const RankSum &call, Team team = {})
      : chunks(static_cast<int>(call.H) / Chunk<T>::kElements), row(blockIdx.x), p(call), team_(team) {}

  // Of the thread's place j.
  __device__ __forceinline__ int place(int j) const { return static_cast<int>(threadIdx.x) + j * team_.threads(); }
  // f(chunk, its index among the thread's).
  template <typename F> __device__ __forceinline__ void each(F &&f) {
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      if (const int c = Places::chunk_at(place(j)); c < chunks)
        f(c, j);
  }
  __device__ __forceinline__ char *data() const { return at(p.data, p.ld); }

  // May come in front of the kernel before.
  __device__ __forceinline__ void load_weight() {
    if constexpr (kNorm)
      each([&](int c, int j) {
#pragma unroll
        for (int i = 0; i < kElements; ++i)
          weight[j][i] = p.norm.weight[c * kElements + i] + p.norm.weight_offset;
      });
  }
  // Best while rows are on their way.
  __device__ __forceinline__ void load_residual() {
    if constexpr (kNorm)
      each([&](int c, int j) { before[j] = *reinterpret_cast<const uint4 *>(residual() + c * kChunk); });
  }
  // The sum to its place, or residual and norm. All threads of the team call.
  __device__ __forceinline__ void finish(float *scratch) {
    if constexpr (!kNorm) {
      each([&](int c, int j) { *reinterpret_cast<uint4 *>(data() + c * kChunk) = sum[j].bits(); });
    } else {
      float square = 0;
      each([&](int c, int j) {
        sum[j].add(before[j]);
        *reinterpret_cast<uint4 *>(residual() + c * kChunk) = sum[j].bits();
#pragma unroll
        for (int i = 0; i < kElements; ++i)
          square += sum[j].v[i] * sum[j].v[i];
      });
      const float scale = rsqrtf(block_sum(square, scratch, team_) / static_cast<float>(p.H) + p.norm.eps);
      char *out = at(p.norm.out, p.norm.ld_out);
      each([&](int c, int j) {
#pragma unroll
        for (int i = 0; i < kElements; ++i)
          sum[j].v[i] *= scale * weight[j][i];
        *reinterpret_cast<uint4 *>(out + c * kChunk) = sum[j].bits();
      });
    }
  }

private:
  static constexpr int kElements = Chunk<T>::kElements;
  __device__ __forceinline__ char *at(void *rows, int64_t ld) const {
    return static_cast<char *>(rows) + row * ld * static_cast<int64_t>(sizeof(T));
  }
  __device__ __forceinline__ char *residual() const { return at(p.norm.residual, p.norm.ld_residual); }

  const RankSum &p;
  const Team team_;
  float weight[kNorm ? kEach : 1][kElements];
  uint4 before[kNorm ? kEach : 1];
};

// A group's count of calls lives on the device, so that a captured graph can be replayed: the number of this call, from 1 on.
__device__ __forceinline__ uint32_t begin_call(const RankSum &p) {
  const uint32_t epoch = *static_cast<volatile uint32_t *>(p.state) + 1;
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *p.host.at = p.number;
  return epoch;
}
// The last block to come here ends the call: all of them have read its number.
__device__ __forceinline__ void end_call(const RankSum &p, uint32_t epoch) {
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(p.state + 1, 1u) == gridDim.x - 1) {
    p.state[1] = 0;
    p.state[0] = epoch;
  }
}

// Starts a kernel with a block a row and `each` chunks a thread.
template <typename Call> void launch_rows(void (*kernel)(Call), const Call &p, int64_t each, cudaStream_t stream) {
  const int64_t chunks = p.H * static_cast<int64_t>(dtype_bytes(p.act)) / kChunk;
  const int64_t threads = ceil_div(ceil_div(chunks, each), 32) * 32;
  launch(kernel, dim3(static_cast<unsigned>(p.T)), dim3(static_cast<unsigned>(threads)), 0, stream, p);
}

} // namespace llmrt::cuda
