// Exact sampling over the vocabulary, one block a row, without sorting.
//
// A draw from softmax(x / temperature) is the argmax of x / temperature + Gumbel noise, so one pass suffices where nothing
// filters. Filters become one threshold: a radix descent over the bits of the logits finds the k-th largest value (counts)
// and the value at which the kept mass reaches p (sums of probabilities in fixed point, so that the order of atomic
// additions cannot change them). Noise is a hash of (seed, counter, token): the same request draws the same tokens whatever
// else is in the batch.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/kernels.h"

#include <utility>

namespace llmrt::cuda {

namespace {

constexpr int kThreads = 1024;
constexpr double kFixedOne = 1099511627776.0; // 2^40: mass of 1 in fixed point

// Order-preserving map of floats to unsigned integers.
__device__ __forceinline__ uint32_t key_of(float x) {
  const uint32_t bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Philox 4x32-10 (Salmon et al., 2011): one uniform in (0, 1) for (seed, counter, token).
__device__ __forceinline__ float uniform(uint64_t seed, uint64_t counter, uint32_t token) {
  uint32_t x0 = token, x1 = static_cast<uint32_t>(counter), x2 = static_cast<uint32_t>(counter >> 32), x3 = 0;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t h0 = __umulhi(0xD2511F53u, x0), l0 = 0xD2511F53u * x0;
    const uint32_t h1 = __umulhi(0xCD9E8D57u, x2), l1 = 0xCD9E8D57u * x2;
    x0 = h1 ^ x1 ^ k0, x1 = l1, x2 = h0 ^ x3 ^ k1, x3 = l0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return (static_cast<float>(x0 >> 8) + 0.5f) * (1.0f / 16777216.0f);
}

struct Best {
  float value;
  uint32_t token;
};
// The larger value; the lower token where they tie.
__device__ __forceinline__ Best better(Best a, Best b) {
  return b.value > a.value || (b.value == a.value && b.token < a.token) ? b : a;
}
__device__ Best block_best(Best best, Best *scratch) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int offset = 16; offset; offset >>= 1)
    best = better(best, {__shfl_xor_sync(0xffffffffu, best.value, offset),
                         __shfl_xor_sync(0xffffffffu, best.token, offset)});
  __syncthreads();
  if (lane == 0)
    scratch[warp] = best;
  __syncthreads();
  best = scratch[lane];
#pragma unroll
  for (int offset = 16; offset; offset >>= 1)
    best = better(best, {__shfl_xor_sync(0xffffffffu, best.value, offset),
                         __shfl_xor_sync(0xffffffffu, best.token, offset)});
  return best;
}

// Radix descent from the top eight bits of the keys: finds the largest key T such that weight(keys >= T) reaches `target`.
// weight(token) is 1 or a probability in fixed point; keys below `floor` do not count. All threads call and agree.
template <typename Weight>
__device__ uint32_t threshold(const float *logits, int64_t V, uint32_t floor, uint64_t target, unsigned long long *bins,
                              Weight &&weight) {
  __shared__ uint32_t shared_prefix;
  __shared__ unsigned long long shared_left;
  uint32_t prefix = 0;
  uint64_t left = target;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += kThreads)
      bins[i] = 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < V; i += kThreads) {
      const uint32_t key = key_of(logits[i]);
      if (key >= floor && (shift == 24 || key >> (shift + 8) == prefix >> (shift + 8)))
        atomicAdd(&bins[key >> shift & 255], static_cast<unsigned long long>(weight(logits[i])));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int bin = 255;
      while (bin > 0 && bins[bin] < left)
        left -= bins[bin--];
      shared_prefix = prefix | static_cast<uint32_t>(bin) << shift;
      shared_left = left;
    }
    __syncthreads();
    prefix = shared_prefix;
    left = shared_left;
    __syncthreads();
  }
  return prefix;
}

__global__ void __launch_bounds__(kThreads) sample_kernel(int32_t *tokens, float *logprobs, const float *all_logits,
                                                          int64_t ld, const SampleRow *rows, int64_t V) {
  __shared__ float scratch[33];
  __shared__ Best best_scratch[kThreads / 32];
  __shared__ unsigned long long bins[256];
  wait_for_previous();
  let_next_start();
  const float *logits = all_logits + blockIdx.x * ld;
  const SampleRow row = rows[blockIdx.x];
  const bool greedy = row.temperature <= 0;

  Best top = {-INFINITY, 0xffffffffu};
  for (int64_t i = threadIdx.x; i < V; i += kThreads)
    top = better(top, {logits[i], static_cast<uint32_t>(i)});
  top = block_best(top, best_scratch);

  Best chosen = top;
  if (!greedy) {
    const float scale = 1.0f / row.temperature;
    uint32_t floor = 0; // keys from here on are kept
    if (row.min_p > 0)
      floor = key_of(top.value + logf(row.min_p) * row.temperature);
    if (row.top_k > 0 && row.top_k < V) {
      const uint32_t k = threshold(logits, V, floor, static_cast<uint64_t>(row.top_k), bins, [](float) { return 1ull; });
      floor = max(floor, k);
    }
    if (row.top_p < 1.0f) {
      // Mass of what the filters before left, then the share of it that top_p keeps.
      float mass = 0;
      for (int64_t i = threadIdx.x; i < V; i += kThreads)
        if (key_of(logits[i]) >= floor)
          mass += expf((logits[i] - top.value) * scale);
      mass = block_sum(mass, scratch);
      __syncthreads();
      const double unit = kFixedOne / mass;
      const uint64_t target = static_cast<uint64_t>(fmax(1.0, static_cast<double>(row.top_p) * kFixedOne * 0.999999));
      const uint32_t k = threshold(logits, V, floor, target, bins, [&](float x) {
        return static_cast<unsigned long long>(static_cast<double>(expf((x - top.value) * scale)) * unit);
      });
      floor = max(floor, k);
    }
    chosen = {-INFINITY, 0xffffffffu};
    for (int64_t i = threadIdx.x; i < V; i += kThreads) {
      if (key_of(logits[i]) < floor)
        continue;
      const float noise = -logf(-logf(uniform(row.seed, row.counter, static_cast<uint32_t>(i))));
      chosen = better(chosen, {logits[i] * scale + noise, static_cast<uint32_t>(i)});
    }
    chosen = block_best(chosen, best_scratch);
  }

  if (logprobs) {
    float mass = 0;
    for (int64_t i = threadIdx.x; i < V; i += kThreads)
      mass += expf(logits[i] - top.value);
    mass = block_sum(mass, scratch);
    if (threadIdx.x == 0)
      logprobs[blockIdx.x] = chosen.token < V ? logits[chosen.token] - top.value - logf(mass) : NAN;
  }
  // A row of NaN has no best token; -1 tells the host.
  if (threadIdx.x == 0)
    tokens[blockIdx.x] = chosen.token < V ? static_cast<int32_t>(chosen.token) : -1;
}

} // namespace

void sample(const Sample &p, cudaStream_t stream) {
  if (p.R <= 0)
    return;
  launch(sample_kernel, dim3(static_cast<unsigned>(p.R)), dim3(kThreads), 0, stream, p.tokens, p.logprobs, p.logits, p.ld,
         p.rows, p.V);
}

} // namespace llmrt::cuda
