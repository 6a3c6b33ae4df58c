// V as one 512-bit register. See simd.h.
#pragma once

#include <immintrin.h>

namespace llmrt::cpu::LLMRT_ISA_NS {

typedef __m512 V;

LLMRT_INLINE __mmask16 lanes_below(int64_t n) {
  return (__mmask16)((1u << n) - 1u);
}

LLMRT_INLINE V vzero() {
  return _mm512_setzero_ps();
}
LLMRT_INLINE V vset(float x) {
  return _mm512_set1_ps(x);
}
LLMRT_INLINE V vload(const float *p) {
  return _mm512_loadu_ps(p);
}
LLMRT_INLINE V vload_n(const float *p, int64_t n) {
  return _mm512_maskz_loadu_ps(lanes_below(n), p);
}
LLMRT_INLINE void vstore(float *p, V v) {
  _mm512_storeu_ps(p, v);
}
LLMRT_INLINE void vstore_n(float *p, V v, int64_t n) {
  _mm512_mask_storeu_ps(p, lanes_below(n), v);
}
LLMRT_INLINE V vadd(V a, V b) {
  return _mm512_add_ps(a, b);
}
LLMRT_INLINE V vsub(V a, V b) {
  return _mm512_sub_ps(a, b);
}
LLMRT_INLINE V vmul(V a, V b) {
  return _mm512_mul_ps(a, b);
}
LLMRT_INLINE V vdiv(V a, V b) {
  return _mm512_div_ps(a, b);
}
LLMRT_INLINE V vmax(V a, V b) {
  return _mm512_max_ps(a, b);
}
LLMRT_INLINE V vmin(V a, V b) {
  return _mm512_min_ps(a, b);
}
LLMRT_INLINE V vfma(V a, V b, V c) {
  return _mm512_fmadd_ps(a, b, c);
}
LLMRT_INLINE V vfnma(V a, V b, V c) {
  return _mm512_fnmadd_ps(a, b, c);
}
LLMRT_INLINE V vround(V a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
LLMRT_INLINE V vscale2(V a, V n) {
  return _mm512_scalef_ps(a, n);
}
LLMRT_INLINE V vkeep(V v, int64_t lo, int64_t hi, V fill) {
  lo = lo < 0 ? 0 : lo > 16 ? 16 : lo;
  hi = hi < lo ? lo : hi > 16 ? 16 : hi;
  return _mm512_mask_mov_ps(fill, (__mmask16)(lanes_below(hi) & ~lanes_below(lo)), v);
}
LLMRT_INLINE V vselect_lt(V a, V b, V x, V y) {
  return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), x);
}
LLMRT_INLINE float vsum(V v) {
  __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  b = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
LLMRT_INLINE float vmaxlane(V v) {
  __m256 a = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  b = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

LLMRT_INLINE V vload_bf16(const uint16_t *p) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
LLMRT_INLINE V vload_f16(const uint16_t *p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
LLMRT_INLINE __m512i bf16_bits(V v) { // in the low half of each lane
  const __m512i u = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i r =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __m512i nan = _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
  return _mm512_mask_mov_epi32(r, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
}
LLMRT_INLINE void vstore_bf16(uint16_t *p, V v) {
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(bf16_bits(v)));
}
LLMRT_INLINE void vstore_f16(uint16_t *p, V v) {
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LLMRT_INLINE V vload_even_bf16(const uint16_t *p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
}
LLMRT_INLINE V vload_odd_bf16(const uint16_t *p) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32((int)0xffff0000u)));
}
LLMRT_INLINE V vload_i8(const char *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
template <int kShift> LLMRT_INLINE V vload_nibbles(const char *p) {
  return _mm512_cvtepi32_ps(
      _mm512_and_si512(_mm512_srli_epi32(_mm512_loadu_si512(p), kShift), _mm512_set1_epi32(15)));
}
template <bool kNear>
LLMRT_INLINE void vprefetch(const void *p) { // into the first-level cache, or the second
  _mm_prefetch((const char *)p, kNear ? _MM_HINT_T0 : _MM_HINT_T1);
}

LLMRT_INLINE void transpose16(float *dst, const V *s) {
  __m512 a[16], b[16];
  for (int i = 0; i < 8; i++) { // rows 2i, 2i+1 interleaved within 128-bit lanes
    a[2 * i] = _mm512_unpacklo_ps(s[2 * i], s[2 * i + 1]);
    a[2 * i + 1] = _mm512_unpackhi_ps(s[2 * i], s[2 * i + 1]);
  }
  for (int i = 0; i < 4; i++) { // b[4i+j]: column 4*lane + j of rows 4i..4i+3
    b[4 * i + 0] =
        _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[4 * i]), _mm512_castps_pd(a[4 * i + 2])));
    b[4 * i + 1] =
        _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[4 * i]), _mm512_castps_pd(a[4 * i + 2])));
    b[4 * i + 2] =
        _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[4 * i + 1]), _mm512_castps_pd(a[4 * i + 3])));
    b[4 * i + 3] =
        _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[4 * i + 1]), _mm512_castps_pd(a[4 * i + 3])));
  }
  for (int j = 0; j < 4; j++) { // gather the four row groups of columns j, 4+j, 8+j, 12+j
    const __m512 p = _mm512_shuffle_f32x4(b[j], b[4 + j], 0x44),
                 q = _mm512_shuffle_f32x4(b[j], b[4 + j], 0xee);
    const __m512 r = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0x44);
    const __m512 t = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0xee);
    vstore(dst + 16 * (0 + j), _mm512_shuffle_f32x4(p, r, 0x88));
    vstore(dst + 16 * (4 + j), _mm512_shuffle_f32x4(p, r, 0xdd));
    vstore(dst + 16 * (8 + j), _mm512_shuffle_f32x4(q, t, 0x88));
    vstore(dst + 16 * (12 + j), _mm512_shuffle_f32x4(q, t, 0xdd));
  }
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
