// Each pass is written once over 16 lanes and compiled twice, for AVX2 and for the baseline; no fused
// multiply-add is allowed, so that both give the same bits. The choice is made once, when the program starts.
#include "runtime/sample/row_ops.h"

#include <algorithm>
#include <bit>
#include <limits>

#pragma GCC diagnostic ignored "-Wpsabi"

#define LLMRT_INLINE static inline __attribute__((always_inline))

namespace llmrt::sample {
namespace {

constexpr size_t kLanes = 16;
static_assert(kBlock % kLanes == 0);
typedef float Vec __attribute__((vector_size(kLanes * 4), aligned(4)));
typedef int32_t VecI __attribute__((vector_size(kLanes * 4), aligned(4)));
constexpr float kNegInf = -std::numeric_limits<float>::infinity();

LLMRT_INLINE RowMax row_max_body(const float *x, size_t n, float *block_max) {
  VecI nan = {};
  float best = kNegInf;
  const size_t full = n / kBlock;
  for (size_t b = 0; b < full; ++b) {
    const float *p = x + b * kBlock;
    Vec m = Vec{} + kNegInf;
    for (size_t i = 0; i < kBlock; i += kLanes) {
      Vec v = *reinterpret_cast<const Vec *>(p + i);
      nan |= v != v;
      m = v > m ? v : m;
    }
    float largest = m[0];
    for (size_t l = 1; l < kLanes; ++l)
      largest = m[l] > largest ? m[l] : largest;
    block_max[b] = largest;
    best = largest > best ? largest : best;
  }
  bool any_nan = false;
  for (size_t l = 0; l < kLanes; ++l)
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
#define LLMRT_EXP(V, I, v, result)                                                                           \
  do {                                                                                                       \
    V exp_c = (v) < -87.0f ? V{} - 87.0f : (v);                                                              \
    V exp_t = exp_c * 1.44269504088896341f + 12582912.0f;                                                    \
    V exp_k = exp_t - 12582912.0f;                                                                           \
    V exp_r = (exp_c - exp_k * 0.693145751953125f) - exp_k * 1.42860682030941723212e-6f;                     \
    V exp_p = exp_r * (1.0f / 5040) + (1.0f / 720);                                                          \
    exp_p = exp_p * exp_r + (1.0f / 120);                                                                    \
    exp_p = exp_p * exp_r + (1.0f / 24);                                                                     \
    exp_p = exp_p * exp_r + (1.0f / 6);                                                                      \
    exp_p = exp_p * exp_r + 0.5f;                                                                            \
    exp_p = exp_p * exp_r + 1.0f;                                                                            \
    exp_p = exp_p * exp_r + 1.0f;                                                                            \
    I exp_b = __builtin_convertvector(exp_k, I);                                                             \
    exp_b = (exp_b + 127) << 23;                                                                             \
    V exp_s;                                                                                                 \
    __builtin_memcpy(&exp_s, &exp_b, sizeof exp_s);                                                          \
    (result) = (v) < -87.0f ? V{} : exp_p * exp_s;                                                           \
  } while (0)

LLMRT_INLINE double row_exp_body(const float *x, size_t n, float max, float inv_t, float *out,
                                 double *block_sum) {
  double total = 0;
  for (size_t b = 0; b < num_blocks(n); ++b) {
    const size_t begin = b * kBlock, count = std::min(kBlock, n - begin);
    alignas(64) float part[kBlock];
    const float *src = x + begin;
    if (count < kBlock) { // the last block: pad a copy, so that every value takes the same path
      for (size_t i = 0; i < kBlock; ++i)
        part[i] = i < count ? src[i] : kNegInf;
      src = part;
    }
    Vec sum = {};
    for (size_t i = 0; i < kBlock; i += kLanes) {
      Vec v = (*reinterpret_cast<const Vec *>(src + i) - max) * inv_t;
      Vec e;
      LLMRT_EXP(Vec, VecI, v, e);
      if (out) {
        if (count == kBlock)
          *reinterpret_cast<Vec *>(out + begin + i) = e;
        else
          for (size_t l = 0; l < kLanes && i + l < count; ++l)
            out[begin + i + l] = e[l];
      }
      sum += e;
    }
    double s = 0;
    for (size_t l = 0; l < kLanes; ++l)
      s += sum[l];
    block_sum[b] = s;
    total += s;
  }
  return total;
}

LLMRT_INLINE size_t count_better_body(const float *x, size_t n, float value, size_t before) {
  VecI above = {}, equal = {};
  size_t i = 0, count = 0;
  before = std::min(before, n);
  for (; i + kLanes <= before; i += kLanes) {
    Vec v = *reinterpret_cast<const Vec *>(x + i);
    equal -= v == value;
    above -= v > value;
  }
  for (; i < before; ++i)
    count += x[i] >= value;
  for (; i + kLanes <= n; i += kLanes)
    above -= *reinterpret_cast<const Vec *>(x + i) > value;
  for (; i < n; ++i)
    count += x[i] > value;
  for (size_t l = 0; l < kLanes; ++l)
    count += static_cast<size_t>(above[l]) + static_cast<size_t>(equal[l]);
  return count;
}

#if defined(__x86_64__)
#define LLMRT_AVX2 __attribute__((target("avx2")))
LLMRT_AVX2 RowMax row_max_avx2(const float *x, size_t n, float *block_max) {
  return row_max_body(x, n, block_max);
}
LLMRT_AVX2 double row_exp_avx2(const float *x, size_t n, float max, float inv_t, float *out,
                               double *block_sum) {
  return row_exp_body(x, n, max, inv_t, out, block_sum);
}
LLMRT_AVX2 size_t count_better_avx2(const float *x, size_t n, float value, size_t before) {
  return count_better_body(x, n, value, before);
}
const bool have_avx2 = __builtin_cpu_supports("avx2");
#else
constexpr bool have_avx2 = false;
#define row_max_avx2 row_max_body
#define row_exp_avx2 row_exp_body
#define count_better_avx2 count_better_body
#endif

} // namespace

RowMax row_max(const float *x, size_t n, float *block_max) {
  return have_avx2 ? row_max_avx2(x, n, block_max) : row_max_body(x, n, block_max);
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
  return have_avx2 ? row_exp_avx2(x, n, max, inv_t, out, block_sum)
                   : row_exp_body(x, n, max, inv_t, out, block_sum);
}

float exp_one(float x, float max, float inv_t) {
  typedef float V1 __attribute__((vector_size(16)));
  typedef int32_t I1 __attribute__((vector_size(16)));
  V1 v = V1{} + (x - max) * inv_t, e;
  LLMRT_EXP(V1, I1, v, e);
  return e[0];
}

size_t count_better(const float *x, size_t n, float value, size_t before) {
  return have_avx2 ? count_better_avx2(x, n, value, before) : count_better_body(x, n, value, before);
}

} // namespace llmrt::sample
