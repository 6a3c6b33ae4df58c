// Each pass is written once over a vector type and compiled twice, for AVX2 with 8 lanes and for the baseline
// with 4. Sums are always kept in 16 running parts, and no fused multiply-add is allowed, so that both give
// the same bits.
#include "runtime/sample/row_ops.h"

#include <algorithm>
#include <limits>


#define LLMRT_INLINE inline __attribute__((always_inline))

namespace llmrt::sample {
namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();

template <size_t Bytes> struct Simd {
  typedef float F __attribute__((vector_size(Bytes), aligned(4)));
  typedef int32_t I __attribute__((vector_size(Bytes), aligned(4)));
  static constexpr size_t lanes = Bytes / 4;
};
constexpr size_t kParts = 16; // running sums
static_assert(kBlock % kParts == 0);

template <class S> LLMRT_INLINE typename S::F load(const float *p) {
  return *reinterpret_cast<const typename S::F *>(p);
}

template <class S> LLMRT_INLINE float largest_lane(typename S::F m) {
  float best = m[0];
  for (size_t l = 1; l < S::lanes; ++l)
    best = m[l] > best ? m[l] : best;
  return best;
}

template <class S> LLMRT_INLINE RowMax row_max_body(const float *x, size_t n, float *block_max) {
  using F = typename S::F;
  typename S::I nan = {};
  float best = kNegInf;
  bool any_nan = false;
  const size_t full = n / kBlock;
  for (size_t b = 0; b < full; ++b) {
    const float *p = x + b * kBlock;
    F m0 = load<S>(p), m1 = load<S>(p + S::lanes);
    nan |= (m0 != m0) | (m1 != m1);
    // A NaN that stands first would survive the comparisons.
    m0 = m0 == m0 ? m0 : F{} + kNegInf;
    m1 = m1 == m1 ? m1 : F{} + kNegInf;
    for (size_t i = 2 * S::lanes; i < kBlock; i += 2 * S::lanes) {
      F v0 = load<S>(p + i), v1 = load<S>(p + i + S::lanes);
      nan |= (v0 != v0) | (v1 != v1);
      m0 = v0 > m0 ? v0 : m0;
      m1 = v1 > m1 ? v1 : m1;
    }
    const float largest = largest_lane<S>(m0 > m1 ? m0 : m1);
    block_max[b] = largest;
    best = largest > best ? largest : best;
  }
  for (size_t l = 0; l < S::lanes; ++l)
    any_nan |= nan[l] != 0;
  if (full * kBlock < n) {
    float largest = kNegInf;
    for (size_t i = full * kBlock; i < n; ++i) {
      any_nan |= x[i] != x[i];
      largest = x[i] > largest ? x[i] : largest;
    }
    block_max[full] = largest;
    best = largest > best ? largest : best;
  }
  return {best, any_nan};
}

// exp(v) for v <= 0: 2^k * e^r with |r| <= ln2/2, e^r by its Taylor series to r^7 (error < 2^-25); k goes
// into the exponent. Rounding to the nearest k is done by adding and taking away 1.5 * 2^23.
template <class S> LLMRT_INLINE typename S::F exp_of(typename S::F v) {
  using F = typename S::F;
  const F c = v < -87.0f ? F{} - 87.0f : v;
  const F k = (c * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
  const F r = (c - k * 0.693145751953125f) - k * 1.42860682030941723212e-6f;
  F p = r * (1.0f / 5040) + (1.0f / 720);
  p = p * r + (1.0f / 120);
  p = p * r + (1.0f / 24);
  p = p * r + (1.0f / 6);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const typename S::I bits = (__builtin_convertvector(k, typename S::I) + 127) << 23;
  F scale;
  __builtin_memcpy(&scale, &bits, sizeof scale);
  return v < -87.0f ? F{} : p * scale;
}

// Adds up the running sums by halves: 16 parts, 8, 4, then the rest.
template <class Sums> LLMRT_INLINE double add_parts(const Sums &sum) {
  static_assert(sizeof sum == kParts * sizeof(float));
  alignas(64) float parts[kParts];
  __builtin_memcpy(parts, sum, sizeof parts);
  for (size_t half = kParts / 2; half >= 4; half /= 2)
    for (size_t l = 0; l < half; ++l)
      parts[l] += parts[l + half];
  return (static_cast<double>(parts[0]) + parts[1]) + (static_cast<double>(parts[2]) + parts[3]);
}

template <class S>
LLMRT_INLINE double row_exp_body(const float *x, size_t n, float max, float inv_t, float *out,
                                 double *block_sum) {
  using F = typename S::F;
  double total = 0;
  for (size_t b = 0; b < num_blocks(n); ++b) {
    const size_t begin = b * kBlock, count = std::min(kBlock, n - begin);
    const float *src = x + begin;
    alignas(64) float padded[kBlock], last[kBlock];
    float *dst = out ? out + begin : last;
    if (count < kBlock) { // the last block: a padded copy, so that every value takes the same path
      for (size_t i = 0; i < kBlock; ++i)
        padded[i] = i < count ? src[i] : kNegInf;
      src = padded;
      dst = last;
    }
    F sum[kParts / S::lanes] = {};
    for (size_t i = 0; i < kBlock; i += kParts)
      for (size_t j = 0; j < kParts / S::lanes; ++j) {
        const F e = exp_of<S>((load<S>(src + i + j * S::lanes) - max) * inv_t);
        *reinterpret_cast<F *>(dst + i + j * S::lanes) = e;
        sum[j] += e;
      }
    if (out && count < kBlock)
      std::copy_n(last, count, out + begin);
    block_sum[b] = add_parts(sum);
    total += block_sum[b];
  }
  return total;
}

template <class S>
LLMRT_INLINE double row_mass_body(const float *w, size_t n, float threshold, double *block_sum) {
  using F = typename S::F;
  double total = 0;
  for (size_t b = 0; b < num_blocks(n); ++b) {
    const size_t begin = b * kBlock, count = std::min(kBlock, n - begin);
    const float *src = w + begin;
    alignas(64) float padded[kBlock] = {};
    if (count < kBlock) {
      std::copy_n(src, count, padded);
      src = padded;
    }
    F sum[kParts / S::lanes] = {};
    for (size_t i = 0; i < kBlock; i += kParts)
      for (size_t j = 0; j < kParts / S::lanes; ++j) {
        const F e = load<S>(src + i + j * S::lanes);
        sum[j] += e >= threshold ? e : F{};
      }
    block_sum[b] = add_parts(sum);
    total += block_sum[b];
  }
  return total;
}

template <class S>
LLMRT_INLINE size_t count_better_body(const float *x, size_t n, float value, size_t before) {
  typename S::I above = {}, equal = {};
  size_t i = 0, count = 0;
  before = std::min(before, n);
  for (; i + S::lanes <= before; i += S::lanes) {
    const typename S::F v = load<S>(x + i);
    equal -= v == value;
    above -= v > value;
  }
  for (; i < before; ++i)
    count += x[i] >= value;
  for (; i + S::lanes <= n; i += S::lanes)
    above -= load<S>(x + i) > value;
  for (; i < n; ++i)
    count += x[i] > value;
  for (size_t l = 0; l < S::lanes; ++l)
    count += static_cast<size_t>(above[l]) + static_cast<size_t>(equal[l]);
  return count;
}

using Base = Simd<16>;

#if defined(__x86_64__)
#define LLMRT_AVX2 __attribute__((target("avx2")))
LLMRT_AVX2 RowMax row_max_avx2(const float *x, size_t n, float *block_max) {
  return row_max_body<Simd<32>>(x, n, block_max);
}
LLMRT_AVX2 double row_exp_avx2(const float *x, size_t n, float max, float inv_t, float *out,
                               double *block_sum) {
  return row_exp_body<Simd<32>>(x, n, max, inv_t, out, block_sum);
}
LLMRT_AVX2 double row_mass_avx2(const float *w, size_t n, float threshold, double *block_sum) {
  return row_mass_body<Simd<32>>(w, n, threshold, block_sum);
}
LLMRT_AVX2 size_t count_better_avx2(const float *x, size_t n, float value, size_t before) {
  return count_better_body<Simd<32>>(x, n, value, before);
}
const bool have_avx2 = __builtin_cpu_supports("avx2");
#define LLMRT_DISPATCH(name, ...) (have_avx2 ? name##_avx2(__VA_ARGS__) : name##_body<Base>(__VA_ARGS__))
#else
#define LLMRT_DISPATCH(name, ...) name##_body<Base>(__VA_ARGS__)
#endif

} // namespace

RowMax row_max(const float *x, size_t n, float *block_max) {
  return LLMRT_DISPATCH(row_max, x, n, block_max);
}

size_t first_equal(const float *x, size_t n, float value, const float *block_max) {
  for (size_t b = 0; b < num_blocks(n); ++b)
    if (block_max[b] == value)
      for (size_t i = b * kBlock; i < n; ++i)
        if (x[i] == value)
          return i;
  return n;
}

double row_exp(const float *x, size_t n, float max, float inv_t, float *out, double *block_sum) {
  return LLMRT_DISPATCH(row_exp, x, n, max, inv_t, out, block_sum);
}

double row_mass(const float *weights, size_t n, float threshold, double *block_sum) {
  return LLMRT_DISPATCH(row_mass, weights, n, threshold, block_sum);
}

float exp_one(float x, float max, float inv_t) {
  return exp_of<Base>(Base::F{} + (x - max) * inv_t)[0];
}

size_t count_better(const float *x, size_t n, float value, size_t before) {
  return LLMRT_DISPATCH(count_better, x, n, value, before);
}

} // namespace llmrt::sample
