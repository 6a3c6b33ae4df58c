// The work of a step of decode attention as one line, of which every thread block takes an equal stretch: blocks of 16 keys,
// sequence by sequence, KV head by KV head. What attention_balanced.cu cuts up and looks places up in.
#pragma once

#include "kernels/cuda/attention.cuh"

namespace llmrt::cuda {

constexpr int kLineKeys = 16;   // of a step of a warp
constexpr int kLineSeqs = 1024; // of a line, at most

// The query heads of a KV head; row r of a sequence is head r % size of token r / size.
struct HeadGroup {
  int size, inverse;
  __device__ __forceinline__ explicit HeadGroup(int size) : size(size), inverse((65535 + size) / size) {}
  __device__ __forceinline__ int token(int r) const { return r * inverse >> 16; } // r < 16
  __device__ __forceinline__ int head(int r) const { return r - token(r) * size; }
};

// A sequence, and the place in it.
struct LinePlace {
  int seq, kv_head, step, steps; // of this KV head
  int start;                     // its first token among those of the batch
  int begin, past, end;          // keys: the first of step 0, how many precede the new tokens, all
};

// Which part of the line a block works on. Others may work on the same sequence and KV head unless `whole`.
struct LineShare {
  int each, rest; // steps of a block; the first `rest` have one more
  bool whole;
  int first, last; // of this block
  // Where block b begins, and the block that a place in the line belongs to; not for `whole`.
  __device__ __forceinline__ int begin(int b) const { return b * each + min(b, rest); }
  __device__ __forceinline__ int owner(int work) const {
    const int longer = rest * (each + 1);
    return work < longer ? work / (each + 1) : rest + (work - longer) / each;
  }
};

// In shared memory. Sequences of more than kRows rows have no part in it; kWarps warps fill it.
template <int kRows, int kWarps> struct WorkLine {
  static constexpr int kThreads = kWarps * 32;
  int sums[kWarps];
  int starts[kLineSeqs + 1], ends[kLineSeqs]; // seq_starts, context_lens
  int prefix[kLineSeqs + 1]; // work in front of each sequence

  // Where the work of a sequence lies; kv_head and step are the caller's.
  __device__ __forceinline__ void measure(const AttentionParams &p, const HeadGroup &group, int seq, LinePlace &at) const {
    at.seq = seq, at.start = starts[seq];
    const int queries = starts[seq + 1] - at.start;
    at.end = ends[seq], at.past = at.end - queries;
    at.begin = p.window ? max(0, at.past - p.window + 1) / kLineKeys * kLineKeys : 0;
    const bool mine = at.end > 0 && queries > 0 && queries * group.size <= min(kRows, kDecodeRows);
    at.steps = mine ? (at.end - at.begin + kLineKeys - 1) / kLineKeys : 0;
  }

  // Fills starts, ends and prefix; returns all work.
  __device__ int plan(const AttentionParams &p, const HeadGroup &group, int S) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 1
    for (int s = threadIdx.x; s <= S; s += kThreads) {
      starts[s] = p.seq_starts[s];
      if (s < S)
        ends[s] = p.context_lens[s];
    }
    __syncthreads();
    const int each = (S + kThreads - 1) / kThreads, first = threadIdx.x * each, last = min(S, first + each);
    LinePlace at;
    int mine = 0;
#pragma unroll 1
    for (int s = first; s < last; ++s) {
      measure(p, group, s, at);
      mine += at.steps * p.kv_heads;
    }
    int sum = mine;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, sum, offset);
      sum += lane >= offset ? other : 0;
    }
    if (lane == 31)
      sums[warp] = sum;
    __syncthreads();
    int before = sum - mine, total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      before += w < warp ? sums[w] : 0;
      total += sums[w];
    }
#pragma unroll 1
    for (int s = first; s < last; ++s) {
      prefix[s] = before;
      measure(p, group, s, at);
      before += at.steps * p.kv_heads;
    }
    if (threadIdx.x == 0)
      prefix[S] = total;
    __syncthreads();
    return total;
  }

  // The place at `work`, counted from the line's beginning.
  __device__ __forceinline__ void seek(const AttentionParams &p, const HeadGroup &group, int S, int work, LinePlace &at) const {
    int lo = 0, hi = S; // prefix[lo] <= work < prefix[hi]
#pragma unroll 1
    while (hi - lo > 1) {
      const int middle = (lo + hi) / 2;
      (prefix[middle] <= work ? lo : hi) = middle;
    }
    measure(p, group, lo, at);
    at.kv_head = (work - prefix[lo]) / at.steps;
    at.step = work - prefix[lo] - at.kv_head * at.steps;
  }

  // From the end of a sequence and KV head to the beginning of the next that has work.
  __device__ __forceinline__ void next_pair(const AttentionParams &p, const HeadGroup &group, LinePlace &at) const {
    at.step = 0;
    if (++at.kv_head < p.kv_heads)
      return;
    at.kv_head = 0;
    int seq = at.seq + 1;
#pragma unroll 1
    while (prefix[seq] == prefix[seq + 1]) // there is work left
      ++seq;
    measure(p, group, seq, at);
  }

  __device__ LineShare share(const AttentionParams &p, int S, int total) const {
    const int pairs = S * p.kv_heads, grid = gridDim.x, block = blockIdx.x, count = (pairs + grid - 1) / grid;
    auto at_pair = [&](int i) { // the work in front of it
      const int seq = min(i, pairs) / p.kv_heads, before = prefix[seq];
      return i < pairs ? before + (i - seq * p.kv_heads) * ((prefix[seq + 1] - before) / p.kv_heads) : before;
    };
    // As many pairs for each block, if none then has much more than its share: merging costs as much as some 40 steps.
    constexpr int kSpare = 32; // steps above its share
    bool even = true;
#pragma unroll 1
    for (int b = threadIdx.x; b < grid; b += kThreads)
      even &= (at_pair((b + 1) * count) - at_pair(b * count) - kSpare) * int64_t{grid} <= total;
    LineShare mine = {};
    mine.whole = __syncthreads_and(even);
    if (mine.whole) {
      mine.first = at_pair(block * count), mine.last = at_pair((block + 1) * count);
    } else {
      const int blocks = min(grid, (total + kWarps - 1) / kWarps);
      mine.each = total / blocks, mine.rest = total - blocks * mine.each;
      mine.first = mine.begin(min(block, blocks)), mine.last = mine.begin(min(block + 1, blocks));
    }
    return mine;
  }
};

} // namespace llmrt::cuda
