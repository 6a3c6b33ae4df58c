// V as two 256-bit registers. See simd.h.
#pragma once

#include <immintrin.h>

namespace llmrt::cpu::LLMRT_ISA_NS {

struct V {
  __m256 a, b;
};

LLMRT_INLINE V vzero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
LLMRT_INLINE V vset(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
LLMRT_INLINE V vload(const float *p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
LLMRT_INLINE void vstore(float *p, V v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
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
#define LLMRT_V2(name, op)                                                                                   \
  LLMRT_INLINE V name(V x, V y) {                                                                            \
    return {op(x.a, y.a), op(x.b, y.b)};                                                                     \
  }
LLMRT_V2(vadd, _mm256_add_ps)
LLMRT_V2(vsub, _mm256_sub_ps)
LLMRT_V2(vmul, _mm256_mul_ps)
LLMRT_V2(vdiv, _mm256_div_ps)
LLMRT_V2(vmax, _mm256_max_ps)
LLMRT_V2(vmin, _mm256_min_ps)
#undef LLMRT_V2
LLMRT_INLINE V vfma(V x, V y, V z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
LLMRT_INLINE V vfnma(V x, V y, V z) {
  return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
LLMRT_INLINE V vround(V x) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, mode), _mm256_round_ps(x.b, mode)};
}
LLMRT_INLINE __m256 scale2_half(__m256 x, __m256 n) { // in two steps, as 2^n itself may not be a float
  const __m256i i = _mm256_cvtps_epi32(n), h = _mm256_srai_epi32(i, 1), l = _mm256_sub_epi32(i, h);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256 ph = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(h, bias), 23));
  const __m256 pl = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(l, bias), 23));
  return _mm256_mul_ps(_mm256_mul_ps(x, ph), pl);
}
LLMRT_INLINE V vscale2(V x, V n) {
  return {scale2_half(x.a, n.a), scale2_half(x.b, n.b)};
}
LLMRT_INLINE __m256 keep_half(__m256 v, int lo, int hi, __m256 fill, int base) {
  const __m256i i = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(base));
  const __m256i in = _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(lo), i),
                                         _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), i));
  return _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(in));
}
LLMRT_INLINE V vkeep(V v, int64_t lo, int64_t hi, V fill) {
  const int l = lo < 0 ? 0 : lo > 16 ? 16 : (int)lo, h = hi < 0 ? 0 : hi > 16 ? 16 : (int)hi;
  return {keep_half(v.a, l, h, fill.a, 0), keep_half(v.b, l, h, fill.b, 8)};
}
LLMRT_INLINE V vselect_lt(V a, V b, V x, V y) {
  return {_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
          _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ))};
}
LLMRT_INLINE float vsum(V v) {
  const __m256 a = _mm256_add_ps(v.a, v.b);
  __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  b = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
LLMRT_INLINE float vmaxlane(V v) {
  const __m256 a = _mm256_max_ps(v.a, v.b);
  __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  b = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

LLMRT_INLINE __m256 widen_bf16(const uint16_t *p) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
LLMRT_INLINE V vload_bf16(const uint16_t *p) {
  return {widen_bf16(p), widen_bf16(p + 8)};
}
LLMRT_INLINE V vload_f16(const uint16_t *p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
          _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
}
LLMRT_INLINE __m256i bf16_bits(__m256 v) { // in the low half of each lane
  const __m256i u = _mm256_castps_si256(v), h = _mm256_srli_epi32(u, 16);
  const __m256i r = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)),
                                                       _mm256_and_si256(h, _mm256_set1_epi32(1))),
                                      16);
  const __m256i nan = _mm256_or_si256(h, _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(r, nan, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
}
LLMRT_INLINE void vstore_bf16(uint16_t *p, V v) {
  const __m256i x = _mm256_packus_epi32(bf16_bits(v.a), bf16_bits(v.b)); // halves of a and b alternate
  _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(x, 0xd8));
}
LLMRT_INLINE void vstore_f16(uint16_t *p, V v) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v.a, mode));
  _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(v.b, mode));
}
LLMRT_INLINE __m256 even_bf16(const uint16_t *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256((const __m256i *)p), 16));
}
LLMRT_INLINE __m256 odd_bf16(const uint16_t *p) {
  return _mm256_castsi256_ps(
      _mm256_and_si256(_mm256_loadu_si256((const __m256i *)p), _mm256_set1_epi32((int)0xffff0000u)));
}
LLMRT_INLINE V vload_even_bf16(const uint16_t *p) {
  return {even_bf16(p), even_bf16(p + 16)};
}
LLMRT_INLINE V vload_odd_bf16(const uint16_t *p) {
  return {odd_bf16(p), odd_bf16(p + 16)};
}
LLMRT_INLINE V vload_i8(const char *p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p))),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))))};
}
template <int kShift> LLMRT_INLINE __m256 nibbles(const char *p) {
  const __m256i q = _mm256_loadu_si256((const __m256i *)p);
  return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(q, kShift), _mm256_set1_epi32(15)));
}
template <int kShift> LLMRT_INLINE V vload_nibbles(const char *p) {
  return {nibbles<kShift>(p), nibbles<kShift>(p + 32)};
}
template <bool kNear>
LLMRT_INLINE void vprefetch(const void *p) { // into the first-level cache, or the second
  _mm_prefetch((const char *)p, kNear ? _MM_HINT_T0 : _MM_HINT_T1);
}

// Eight rows of eight columns; dst rows are 16 apart.
LLMRT_INLINE void transpose8(float *dst, __m256 r0, __m256 r1, __m256 r2, __m256 r3, __m256 r4, __m256 r5,
                             __m256 r6, __m256 r7) {
  const __m256 a0 = _mm256_unpacklo_ps(r0, r1), a1 = _mm256_unpackhi_ps(r0, r1),
               a2 = _mm256_unpacklo_ps(r2, r3), a3 = _mm256_unpackhi_ps(r2, r3),
               a4 = _mm256_unpacklo_ps(r4, r5), a5 = _mm256_unpackhi_ps(r4, r5),
               a6 = _mm256_unpacklo_ps(r6, r7), a7 = _mm256_unpackhi_ps(r6, r7);
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee),
               b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee),
               b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee),
               b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
  _mm256_storeu_ps(dst + 0 * 16, _mm256_permute2f128_ps(b0, b4, 0x20));
  _mm256_storeu_ps(dst + 1 * 16, _mm256_permute2f128_ps(b1, b5, 0x20));
  _mm256_storeu_ps(dst + 2 * 16, _mm256_permute2f128_ps(b2, b6, 0x20));
  _mm256_storeu_ps(dst + 3 * 16, _mm256_permute2f128_ps(b3, b7, 0x20));
  _mm256_storeu_ps(dst + 4 * 16, _mm256_permute2f128_ps(b0, b4, 0x31));
  _mm256_storeu_ps(dst + 5 * 16, _mm256_permute2f128_ps(b1, b5, 0x31));
  _mm256_storeu_ps(dst + 6 * 16, _mm256_permute2f128_ps(b2, b6, 0x31));
  _mm256_storeu_ps(dst + 7 * 16, _mm256_permute2f128_ps(b3, b7, 0x31));
}
LLMRT_INLINE void transpose16(float *dst, const V *s) {
  transpose8(dst, s[0].a, s[1].a, s[2].a, s[3].a, s[4].a, s[5].a, s[6].a, s[7].a);
  transpose8(dst + 8, s[8].a, s[9].a, s[10].a, s[11].a, s[12].a, s[13].a, s[14].a, s[15].a);
  transpose8(dst + 128, s[0].b, s[1].b, s[2].b, s[3].b, s[4].b, s[5].b, s[6].b, s[7].b);
  transpose8(dst + 136, s[8].b, s[9].b, s[10].b, s[11].b, s[12].b, s[13].b, s[14].b, s[15].b);
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
