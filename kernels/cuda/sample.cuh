// What kernels that look for a row's best tokens share: the blocks of a cluster as a team, and its slices of a row.
#pragma once

#include "kernels/cuda/common.cuh"

#include <cooperative_groups.h>

namespace llmrt::cuda {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kMostParts = 8; // blocks of a row
constexpr int kBins = 16;     // of one pass of the search for a threshold, one a warp

struct Best {
  float value;
  uint32_t token;
};
// The larger value; the lower token where they tie.
__device__ __forceinline__ Best better(Best a, Best b) {
  return b.value > a.value || (b.value == a.value && b.token < a.token) ? b : a;
}

// The token of row r, for the next step and, where the host wants it too, for the host.
__device__ __forceinline__ void put_token(int32_t *tokens, int32_t *host_tokens, int64_t r, int32_t token) {
  tokens[r] = token;
  if (host_tokens)
    host_tokens[r] = token;
}

struct Shared {
  float sums[kWarps];
  Best best[kWarps];
  float all_sums[2][kMostParts][kBins]; // each block's, by turns
  Best all_best[2][kMostParts];
};

// The blocks of a row: sums and maxima over all of their threads, the same value in every thread.
struct Team {
  Shared &shared;
  int parts, rank;
  int turn = 0;

  __device__ void sync() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (parts > 1)
      return cooperative_groups::this_cluster().sync();
#endif
    __syncthreads();
  }
  // Every block calls arrived() first and all_arrived() before it writes to another, which may not have begun yet.
  __device__ void arrived() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (parts > 1)
      cooperative_groups::this_cluster().barrier_arrive();
#endif
  }
  __device__ void all_arrived() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (parts > 1)
      cooperative_groups::this_cluster().barrier_wait();
#endif
  }
  template <typename T> __device__ T *at(T *mine, int part) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (parts > 1)
      return cooperative_groups::this_cluster().map_shared_rank(mine, part);
#endif
    return mine;
  }

  __device__ float sum(float v) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_sum(v);
    if (lane == 0)
      shared.sums[warp] = v;
    __syncthreads();
    turn ^= 1;
    if (warp == 0) {
      v = warp_sum(lane < kWarps ? shared.sums[lane] : 0.0f);
      if (lane < parts)
        *at(&shared.all_sums[turn][rank][0], lane) = v;
    }
    sync();
    v = 0;
    for (int part = 0; part < parts; ++part)
      v += shared.all_sums[turn][part][0];
    return v;
  }

  // Sums bins[kBins][kThreads] over all threads; lane i of every warp gets bin i.
  __device__ float sum_bins(const float *bins) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __syncthreads();
    turn ^= 1;
    float v = 0;
#pragma unroll
    for (int i = 0; i < kThreads / 32; ++i)
      v += bins[warp * kThreads + i * 32 + lane];
    v = warp_sum(v);
    if (lane < parts)
      *at(&shared.all_sums[turn][rank][warp], lane) = v;
    sync();
    v = 0;
    if (lane < kBins)
      for (int part = 0; part < parts; ++part)
        v += shared.all_sums[turn][part][lane];
    return v;
  }

  __device__ Best best(Best mine) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto warp_best = [&]() {
#pragma unroll
      for (int offset = 16; offset; offset >>= 1)
        mine = better(mine, {__shfl_xor_sync(0xffffffffu, mine.value, offset),
                             __shfl_xor_sync(0xffffffffu, mine.token, offset)});
    };
    warp_best();
    if (lane == 0)
      shared.best[warp] = mine;
    __syncthreads();
    turn ^= 1;
    if (warp == 0) {
      mine = shared.best[lane % kWarps];
      warp_best();
      if (lane < parts)
        *at(&shared.all_best[turn][rank], lane) = mine;
    }
    sync();
    mine = shared.all_best[turn][0];
    for (int part = 1; part < parts; ++part)
      mine = better(mine, shared.all_best[turn][part]);
    return mine;
  }
};

// This block's part of a row; x[i] is the logit of token begin + i. Tokens come in fours: begin is a multiple of four.
struct Slice {
  const float *x;
  int64_t begin;
  int count;
  // f(values, how many, index in the slice) for every four.
  template <int kUnroll = 1, typename F> __device__ __forceinline__ void each_four(bool wide, F &&f) const {
    const int whole = wide ? count / 4 * 4 : 0;
    int i = static_cast<int>(threadIdx.x) * 4;
    if constexpr (kUnroll > 1)
      for (; i + (kUnroll - 1) * kThreads * 4 < whole; i += kUnroll * kThreads * 4) {
        float4 fours[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
          fours[u] = *reinterpret_cast<const float4 *>(x + i + u * kThreads * 4);
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          float v[4] = {fours[u].x, fours[u].y, fours[u].z, fours[u].w};
          f(v, 4, i + u * kThreads * 4);
        }
      }
    for (; i < whole; i += kThreads * 4) {
      const float4 four = *reinterpret_cast<const float4 *>(x + i);
      float v[4] = {four.x, four.y, four.z, four.w};
      f(v, 4, i);
    }
    if (i < count) { // unaligned rows, and the last few tokens
      for (; i < count; i += kThreads * 4) {
        float v[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
          v[e] = i + e < count ? x[i + e] : -INFINITY;
        f(v, min(4, count - i), i);
      }
    }
  }
};

// The best token of a row, in every thread of its team; its index is beyond V where the row is NaN. The caller syncs the
// team before a block ends.
__device__ __forceinline__ Best best_of_row(Team &team, const float *logits, int64_t V, bool wide) {
  team.arrived();
  const int64_t each = ((V + team.parts - 1) / team.parts + 3) / 4 * 4, begin = min(V, team.rank * each);
  const Slice slice{logits + begin, begin, static_cast<int>(min(each, V - begin))};
  Best top = {-INFINITY, 0xffffffffu};
  slice.each_four<4>(wide, [&](const float(&v)[4], int n, int i) {
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (e < n)
        top = better(top, {v[e], static_cast<uint32_t>(begin + i + e)});
  });
  team.all_arrived();
  return team.best(top);
}

// Blocks of each of R rows where only the best tokens are wanted, which do not depend on it.
inline int greedy_parts(int64_t R) {
  const DeviceLimits &device = device_limits();
  int parts = device.major >= 9 ? kMostParts : 1;
  while (parts > 1 && R * parts > 3 * device.sms)
    parts /= 2;
  return parts;
}

} // namespace llmrt::cuda
