// Exact sampling over the vocabulary without sorting: the blocks of a cluster share a row and keep it in shared memory.
//
// A draw from softmax(x / temperature) is the argmax of x / temperature + Gumbel noise, so one pass suffices where nothing
// filters. Filters become one threshold: a radix search over the bits of the logits finds the k-th largest value (counts)
// and the value at which the kept mass reaches p. Every thread has bins of its own, so there are no atomics: sums come in a
// fixed order, and the time does not depend on the values. Noise is a hash of (seed, counter, token): the same request draws the same tokens whatever
// else is in the batch.
#include "kernels/cuda/sample.cuh"
#include "kernels/cuda/sample.h"

#include <utility>

namespace llmrt::cuda {

namespace {

constexpr float kMostNoise = 23; // Gumbel noise of 32 bits is below this

// Order-preserving map of floats to unsigned integers.
__device__ __forceinline__ uint32_t key_of(float x) {
  const uint32_t bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Philox 4x32-10 (Salmon et al., 2011): four words for (seed, counter, group of four tokens).
__device__ __forceinline__ void philox(uint32_t (&x)[4], uint64_t seed, uint64_t counter, uint32_t group) {
  x[0] = group, x[1] = static_cast<uint32_t>(counter), x[2] = static_cast<uint32_t>(counter >> 32), x[3] = 0;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t h0 = __umulhi(0xD2511F53u, x[0]), l0 = 0xD2511F53u * x[0];
    const uint32_t h1 = __umulhi(0xCD9E8D57u, x[2]), l1 = 0xCD9E8D57u * x[2];
    x[0] = h1 ^ x[1] ^ k0, x[1] = l1, x[2] = h0 ^ x[3] ^ k1, x[3] = l0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
}

// -log(-log(1 - r)) of r uniform in (0, 1). The largest values come from the smallest r, where the series is exact.
__device__ __forceinline__ float gumbel(uint32_t word) {
  const float r = (static_cast<float>(word) + 0.5f) * 2.3283064365386963e-10f;
  const float series = r * (1 + r * (0.5f + r * (0.33333333f + r * (0.25f + r * 0.2f))));
  return -__logf(r < 0.05f ? series : -__logf(1 - r));
}

// The largest key T in [lo, hi) such that weight(keys >= T) reaches `target`, or one that keeps the same tokens; lo where
// none does. No key is above hi. All threads call and agree.
template <typename Weight>
__device__ uint32_t threshold(Team &team, const Slice &slice, bool wide, float *bins, uint32_t lo, uint32_t hi, float target,
                              Weight &&weight) {
  float above = 0; // weight of what has been found to be above the interval
  while (hi - lo > 1) {
    const int bits = 32 - __clz(static_cast<int>(hi - lo - 1)), shift = bits > 4 ? bits - 4 : 0;
#pragma unroll
    for (int i = 0; i < kBins; ++i)
      bins[i * kThreads + threadIdx.x] = 0;
    slice.each_four(wide, [&](const float(&v)[4], int n, int) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const uint32_t key = key_of(v[e]);
        if (e < n && key >= lo && key < hi)
          bins[((key - lo) >> shift) * kThreads + threadIdx.x] += weight(v[e]);
      }
    });
    const float mine = team.sum_bins(bins);
    int digit = kBins;
    float sum = above, higher = above;
    do {
      --digit;
      higher = sum;
      sum += __shfl_sync(0xffffffffu, mine, digit);
    } while (digit > 0 && sum < target);
    above = higher;
    lo += static_cast<uint32_t>(digit) << shift;
    hi = min(hi - lo, 1u << shift) + lo;
    if (sum == target)
      break;
  }
  return lo;
}

__global__ void __launch_bounds__(kThreads, 2)
    sample_kernel(int32_t *tokens, int32_t *host_tokens, float *logprobs, const float *all_logits, int64_t ld, const SampleRow *rows, int64_t V,
                  int parts, bool staged, bool wide) {
  extern __shared__ __align__(16) float bins[]; // [kBins][kThreads], then the slice, where it fits
  float *stage = bins + kBins * kThreads;
  __shared__ Shared shared;
  let_next_start();
  wait_for_previous();
  const int64_t r = blockIdx.x / parts;
  Team team{shared, parts, static_cast<int>(blockIdx.x % parts)};
  team.arrived();
  const float *logits = all_logits + r * ld;
  const SampleRow row = rows[r];
  const bool greedy = row.temperature <= 0;

  const int64_t each = ((V + parts - 1) / parts + 3) / 4 * 4, begin = min(V, team.rank * each);
  Slice slice{logits + begin, begin, static_cast<int>(min(each, V - begin))};
  Best top = {-INFINITY, 0xffffffffu};
  const bool keep = staged && (!greedy || logprobs);
  slice.each_four<4>(wide, [&](float(&v)[4], int n, int i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (e < n)
        top = better(top, {v[e], static_cast<uint32_t>(begin + i + e)});
      v[e] = fmaxf(v[e], -INFINITY); // NaN
    }
    if (keep)
      *reinterpret_cast<float4 *>(stage + i) = make_float4(v[0], v[1], v[2], v[3]);
  });
  if (keep)
    slice.x = stage, wide = true; // each thread reads what it wrote
  team.all_arrived();
  top = team.best(top);

  Best chosen = top;
  if (!greedy && top.token < V) {
    const float scale = 1.0f / row.temperature;
    const uint32_t top_key = key_of(top.value);
    auto mass = [&](float x) { return expf((x - top.value) * scale); };
    uint32_t floor = 0; // keys from here on are kept
    if (row.min_p > 0)
      floor = min(top_key, key_of(top.value + logf(row.min_p) * row.temperature));
    if (row.top_k > 0 && row.top_k < V)
      floor = threshold(team, slice, wide, bins, floor, top_key + 1, static_cast<float>(row.top_k), [](float) { return 1.0f; });
    if (row.top_p < 1.0f) {
      // Mass of what the filters before left, then the share of it that top_p keeps. All tokens below `negligible`
      // together have less than half of what may be dropped.
      const float drop = fminf(104.0f, logf(2.0f * static_cast<float>(V) / fmaxf(1.0f - row.top_p, 1e-30f)));
      const uint32_t negligible = max(floor, min(top_key, key_of(top.value - drop * row.temperature)));
      float total = 0;
      slice.each_four(wide, [&](const float(&v)[4], int n, int) {
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (e < n && v[e] <= top.value && key_of(v[e]) >= floor)
            total += mass(v[e]);
      });
      total = team.sum(total);
      floor = threshold(team, slice, wide, bins, negligible, top_key + 1, row.top_p * 0.999999f * total, mass);
    }
    // Tokens too far below the best token's own draw cannot win.
    uint32_t words[4];
    philox(words, row.seed, row.counter, top.token / 4);
    const float first = top.value * scale + gumbel(words[top.token % 4]);
    chosen = {first, top.token};
    slice.each_four(wide, [&](const float(&v)[4], int n, int i) {
      const float most = fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));
      if (key_of(most) < floor || most * scale + kMostNoise < chosen.value)
        return;
      uint32_t noise[4];
      philox(noise, row.seed, row.counter, static_cast<uint32_t>((begin + i) / 4));
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (e < n && key_of(v[e]) >= floor)
          chosen = better(chosen, {v[e] * scale + gumbel(noise[e]), static_cast<uint32_t>(begin + i + e)});
    });
    chosen = team.best(chosen);
  }

  if (logprobs) {
    float total = 0;
    slice.each_four(wide, [&](const float(&v)[4], int n, int) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (e < n)
          total += expf(v[e] - top.value);
    });
    total = team.sum(total);
    if (threadIdx.x == 0 && team.rank == 0)
      logprobs[r] = chosen.token < V ? logits[chosen.token] - top.value - logf(total) : NAN;
  }
  // A row of NaN has no best token; -1 tells the host.
  if (threadIdx.x == 0 && team.rank == 0)
    put_token(tokens, host_tokens, r, chosen.token < V ? static_cast<int32_t>(chosen.token) : -1);
  team.sync(); // no block may end while another still writes to it
}

// All rows greedy: one pass that keeps nothing, so that many blocks fit and the reads run at memory speed.
__global__ void __launch_bounds__(kThreads, 3)
    greedy_kernel(int32_t *tokens, int32_t *host_tokens, const float *all_logits, int64_t ld, int64_t V, int parts, bool wide) {
  __shared__ Shared shared;
  let_next_start();
  wait_for_previous();
  const int64_t r = blockIdx.x / parts;
  Team team{shared, parts, static_cast<int>(blockIdx.x % parts)};
  const Best top = best_of_row(team, all_logits + r * ld, V, wide);
  if (threadIdx.x == 0 && team.rank == 0)
    put_token(tokens, host_tokens, r, top.token < V ? static_cast<int32_t>(top.token) : -1);
  team.sync(); // no block may end while another still writes to it
}

} // namespace

void sample(const Sample &p, cudaStream_t stream) {
  if (p.R <= 0)
    return;
  // The split of a row depends on the device and V alone: sums come in the same order for any batch.
  const DeviceLimits &device = device_limits();
  const bool wide = reinterpret_cast<uintptr_t>(p.logits) % 16 == 0 && p.ld % 4 == 0;
  if (p.greedy && !p.logprobs) {
    const int parts = greedy_parts(p.R);
    return launch_cluster(greedy_kernel, dim3(static_cast<unsigned>(p.R * parts)), dim3(kThreads), 0,
                          static_cast<unsigned>(parts), stream, p.tokens, p.host_tokens, p.logits, p.ld, p.V, parts, wide);
  }
  const int parts = device.major >= 9 ? kMostParts : 1;
  const int64_t each = ceil_div(ceil_div(p.V, parts), 4) * 4;
  constexpr size_t kBinBytes = kBins * kThreads * sizeof(float);
  const bool staged = static_cast<size_t>(each) * 4 + kBinBytes <= device.shared_per_sm / 2 - 4096;
  const size_t bytes = kBinBytes + (staged ? static_cast<size_t>(each) * 4 : 0);
  allow_shared_memory<sample_kernel>();
  launch_cluster(sample_kernel, dim3(static_cast<unsigned>(p.R * parts)), dim3(kThreads), bytes,
                 static_cast<unsigned>(parts), stream, p.tokens, p.host_tokens, p.logprobs, p.logits, p.ld, p.rows, p.V, parts,
                 staged, wide);
}

} // namespace llmrt::cuda
