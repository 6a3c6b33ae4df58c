// V as four vectors of four floats in the compiler's own vector extension: runs on any CPU. See simd.h.
#pragma once

#include "kernels/cpu/impl/half.h"

namespace llmrt::cpu::LLMRT_ISA_NS {

typedef float F4 __attribute__((vector_size(16)));
typedef int32_t I4 __attribute__((vector_size(16)));

struct V {
  F4 q[4];
};

#define LLMRT_Q(expr)                                                                                        \
  V r;                                                                                                       \
  for (int i = 0; i < 4; i++)                                                                                \
    r.q[i] = expr;                                                                                           \
  return r

LLMRT_INLINE V vset(float x) {
  LLMRT_Q((F4{x, x, x, x}));
}
LLMRT_INLINE V vzero() {
  return vset(0.0f);
}
LLMRT_INLINE V vload(const float *p) {
  V r;
  memcpy(&r, p, sizeof r);
  return r;
}
LLMRT_INLINE void vstore(float *p, V v) {
  memcpy(p, &v, sizeof v);
}
LLMRT_INLINE V vload_n(const float *p, int64_t n) {
  float t[16] = {};
  for (int64_t i = 0; i < n; i++)
    t[i] = p[i];
  return vload(t);
}
LLMRT_INLINE void vstore_n(float *p, V v, int64_t n) {
  float t[16];
  vstore(t, v);
  for (int64_t i = 0; i < n; i++)
    p[i] = t[i];
}
LLMRT_INLINE V vadd(V x, V y) {
  LLMRT_Q(x.q[i] + y.q[i]);
}
LLMRT_INLINE V vsub(V x, V y) {
  LLMRT_Q(x.q[i] - y.q[i]);
}
LLMRT_INLINE V vmul(V x, V y) {
  LLMRT_Q(x.q[i] * y.q[i]);
}
LLMRT_INLINE V vdiv(V x, V y) {
  LLMRT_Q(x.q[i] / y.q[i]);
}
LLMRT_INLINE F4 choose(I4 m, F4 x, F4 y) {
  return (F4)((m & (I4)x) | (~m & (I4)y));
}
LLMRT_INLINE V vmax(V x, V y) {
  LLMRT_Q(choose(x.q[i] > y.q[i], x.q[i], y.q[i]));
}
LLMRT_INLINE V vmin(V x, V y) {
  LLMRT_Q(choose(x.q[i] < y.q[i], x.q[i], y.q[i]));
}
LLMRT_INLINE V vfma(V x, V y, V z) {
  LLMRT_Q(x.q[i] * y.q[i] + z.q[i]);
}
LLMRT_INLINE V vfnma(V x, V y, V z) {
  LLMRT_Q(z.q[i] - x.q[i] * y.q[i]);
}
// Adding and taking away 1.5 * 2^23 rounds to nearest even for |x| < 2^22: enough for exponents.
LLMRT_INLINE V vround(V x) {
  const F4 magic = {12582912.0f, 12582912.0f, 12582912.0f, 12582912.0f};
  LLMRT_Q((x.q[i] + magic) - magic);
}
LLMRT_INLINE V vscale2(V x,
                       V n) { // |n| <= 252, in two steps, as 2^n itself may not be a float; NaN n gives NaN
  V r;
  for (int i = 0; i < 4; i++) {
    const I4 e = __builtin_convertvector(choose(n.q[i] == n.q[i], n.q[i], F4{}), I4), h = e >> 1, l = e - h;
    r.q[i] = x.q[i] * (F4)((h + 127) << 23) * (F4)((l + 127) << 23);
  }
  return r;
}
LLMRT_INLINE V vkeep(V v, int64_t lo, int64_t hi, V fill) {
  const int l = lo < 0 ? 0 : lo > 16 ? 16 : (int)lo, h = hi < 0 ? 0 : hi > 16 ? 16 : (int)hi;
  V r;
  for (int i = 0; i < 4; i++) {
    const I4 at = I4{0, 1, 2, 3} + 4 * i;
    r.q[i] = choose((at >= l) & (at < h), v.q[i], fill.q[i]);
  }
  return r;
}
LLMRT_INLINE V vselect_lt(V a, V b, V x, V y) {
  LLMRT_Q(choose(a.q[i] < b.q[i], x.q[i], y.q[i]));
}
LLMRT_INLINE float vsum(V v) {
  const F4 b = (v.q[0] + v.q[2]) + (v.q[1] + v.q[3]);
  return (b[0] + b[2]) + (b[1] + b[3]);
}
LLMRT_INLINE float vmaxlane(V v) {
  const F4 b = choose(v.q[0] > v.q[2], v.q[0], v.q[2]), c = choose(v.q[1] > v.q[3], v.q[1], v.q[3]);
  const F4 d = choose(b > c, b, c);
  const float x = d[0] > d[2] ? d[0] : d[2], y = d[1] > d[3] ? d[1] : d[3];
  return x > y ? x : y;
}
#undef LLMRT_Q

LLMRT_INLINE V vload_bf16(const uint16_t *p) {
  float t[16];
  for (int i = 0; i < 16; i++)
    t[i] = half::from_bf16(p[i]);
  return vload(t);
}
LLMRT_INLINE V vload_f16(const uint16_t *p) {
  float t[16];
  for (int i = 0; i < 16; i++)
    t[i] = half::from_f16(p[i]);
  return vload(t);
}
LLMRT_INLINE void vstore_bf16(uint16_t *p, V v) {
  float t[16];
  vstore(t, v);
  for (int i = 0; i < 16; i++)
    p[i] = half::to_bf16(t[i]);
}
LLMRT_INLINE void vstore_f16(uint16_t *p, V v) {
  float t[16];
  vstore(t, v);
  for (int i = 0; i < 16; i++)
    p[i] = half::to_f16(t[i]);
}
LLMRT_INLINE V vload_even_bf16(const uint16_t *p) { // little-endian pairs
  V r;
  for (int i = 0; i < 4; i++) {
    I4 w;
    memcpy(&w, p + 8 * i, sizeof w);
    r.q[i] = (F4)(w << 16);
  }
  return r;
}
LLMRT_INLINE V vload_odd_bf16(const uint16_t *p) {
  V r;
  for (int i = 0; i < 4; i++) {
    I4 w;
    memcpy(&w, p + 8 * i, sizeof w);
    r.q[i] = (F4)(w & (int32_t)0xffff0000u);
  }
  return r;
}
LLMRT_INLINE V vload_i8(const char *p) {
  float t[16];
  for (int i = 0; i < 16; i++)
    t[i] = (float)(int8_t)p[i];
  return vload(t);
}
template <int kShift> LLMRT_INLINE V vload_nibbles(const char *p) {
  V r;
  for (int i = 0; i < 4; i++) {
    I4 w;
    memcpy(&w, p + 16 * i, sizeof w);
    r.q[i] = __builtin_convertvector((w >> kShift) & 15, F4);
  }
  return r;
}
template <bool kNear> LLMRT_INLINE void vprefetch(const void *) {}
LLMRT_INLINE void transpose16(float *dst, const V *s) {
  for (int r = 0; r < 16; r++)
    for (int c = 0; c < 16; c++)
      dst[c * 16 + r] = s[r].q[c / 4][c % 4];
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
