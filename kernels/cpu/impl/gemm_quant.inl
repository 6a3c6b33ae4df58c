// The innermost loops over quantised panels: integers become floats in registers (exactly), a block of 32
// columns is summed on its own, then scaled and added to the tile, with the offset times the sum of x.
// The order is fixed as in gemm.inl: k within a block, then the blocks.

namespace llmrt::cpu::LLMRT_ISA_NS {

#if LLMRT_SIMD_LEVEL >= 2
constexpr int kMaxQuantRows = 12; // 24 sums, 2 weights, 1 element of x, 1 table
#else
constexpr int kMaxQuantRows = kMaxRows;
#endif
constexpr int most_quant_panels(int rows) {
  return most_panels(rows) > 4 && LLMRT_SIMD_LEVEL >= 2 && rows == 2 ? 4 : most_panels(rows);
}

// kStep elements of K are a block of kStepBytes; its integers are read in kGroups groups of kUnroll pairs of
// k.
struct QuantQ8_0 {
  static constexpr bool kQuantized = true, kOffset = false;
  static constexpr int kStep = 32, kGroups = 16, kUnroll = 1, kGroupBytes = 32;
  static constexpr int64_t kStepBytes = quant_block_bytes(DType::q8_0), kDataAt = quant_data_at(DType::q8_0);
  static constexpr int kChunk = LLMRT_SIMD_LEVEL >= 3 ? 32 : 16;
};
struct QuantQ4_1 {
  static constexpr bool kQuantized = true, kOffset = true;
  static constexpr int kStep = 32, kGroups = 4, kUnroll = 4, kGroupBytes = 64;
  static constexpr int64_t kStepBytes = quant_block_bytes(DType::q4_1), kDataAt = quant_data_at(DType::q4_1);
  static constexpr int kChunk = LLMRT_SIMD_LEVEL >= 3 ? 32 : 16;
};

// Pair number S of a group: elements 2S and 2S + 1 of the 16 rows.
#if LLMRT_SIMD_LEVEL >= 3
template <int S> LLMRT_INLINE __m512i quant_pairs(QuantQ4_1, const char *g, __m512i table) {
  return _mm512_permutexvar_epi16(_mm512_srli_epi16(_mm512_loadu_si512(g), 4 * S),
                                  table); // low 4 of 5 bits count
}
template <int S> LLMRT_INLINE __m512i quant_pairs(QuantQ8_0, const char *g, __m512i) {
  const __m512i even = _mm512_castps_si512(vload_i8(g)), odd = _mm512_castps_si512(vload_i8(g + 16));
  return _mm512_or_si512(_mm512_srli_epi32(even, 16), odd); // bf16 holds eight bits: the rest of both is zero
}
LLMRT_INLINE __m512i bf16_of_nibbles() { // twice 0..15, as the index has one more bit
  const __m256i h = _mm256_setr_epi16(0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100,
                                      0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170);
  return _mm512_broadcast_i64x4(h);
}
template <int S, class Kind, int R, int P>
LLMRT_INLINE void quant_pair(V (&s)[R][P], const char *g, int64_t ps, const char *x, __m512i table) {
  __m512i wv[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; p++)
    wv[p] = quant_pairs<S>(Kind(), g + p * ps, table);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    int32_t pair;
    memcpy(&pair, x + r * 64 + S * 4, 4);
    const __m512i xv = _mm512_set1_epi32(pair);
#pragma GCC unroll 8
    for (int p = 0; p < P; p++)
      s[r][p] = _mm512_dpbf16_ps(s[r][p], (__m512bh)xv, (__m512bh)wv[p]);
  }
}
#else
template <int E> LLMRT_INLINE V quant_value(QuantQ4_1, const char *g) {
  return vload_nibbles<E / 2 * 4 + E % 2 * 16>(g);
}
template <int E> LLMRT_INLINE V quant_value(QuantQ8_0, const char *g) {
  return vload_i8(g + E * 16);
}
template <int E, class Kind, int R, int P>
LLMRT_INLINE void quant_element(V (&s)[R][P], const char *g, int64_t ps, const char *x) {
  V wv[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; p++)
    wv[p] = quant_value<E>(Kind(), g + p * ps);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    const V xv = vset(((const float *)x)[r * 16 + E]);
#pragma GCC unroll 8
    for (int p = 0; p < P; p++)
      s[r][p] = vfma(xv, wv[p], s[r][p]);
  }
}
template <int S, class Kind, int R, int P>
LLMRT_INLINE void quant_pair(V (&s)[R][P], const char *g, int64_t ps, const char *x, int) {
  quant_element<2 * S, Kind>(s, g, ps, x);
  quant_element<2 * S + 1, Kind>(s, g, ps, x);
}
LLMRT_INLINE int bf16_of_nibbles() {
  return 0;
}
#endif

// tile [P][R][16] (+)= x . panels over K / 32 blocks; sums [K/32][R].
template <class Kind, int R, int P>
__attribute__((noinline)) void quant_micro(const void *xp, const float *sums, const void *wp, int64_t ps,
                                           int64_t K, float *tile, bool first, const Prefetch &prefetch) {
  const char *x = (const char *)xp, *w = (const char *)wp, *wanted = prefetch.at;
  int64_t wanted_steps = prefetch.steps, before_jump = prefetch.before_jump;
  const auto table = bf16_of_nibbles();
  constexpr int kGroupsPerChunk = Kind::kGroups * Kind::kChunk / 32, kPairBytes = 2 * 64 / Kind::kChunk;
  for (int64_t k = 0; k < K; k += 32, w += Kind::kStepBytes, sums += R) {
    if (wanted_steps > 0) {
#pragma GCC unroll 8
      for (int p = 0; p < P; p++)
        for (int64_t line = 0; line < Kind::kStepBytes; line += 64)
          vprefetch<(R <= 8)>(wanted + p * ps + line);
      wanted += Kind::kStepBytes;
      wanted_steps--;
      if (before_jump > 0 && --before_jump == 0)
        wanted += prefetch.jump;
    }
    V s[R][P];
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
      for (int p = 0; p < P; p++)
        s[r][p] = vzero();
    const char *g = w + Kind::kDataAt;
    for (int c = 0; c < 32 / Kind::kChunk; c++) {
      for (int i = 0; i < kGroupsPerChunk; i++) {
        const char *xg = x + i * Kind::kUnroll * kPairBytes;
        quant_pair<0, Kind>(s, g, ps, xg, table);
        if constexpr (Kind::kUnroll == 4) {
          quant_pair<1, Kind>(s, g, ps, xg, table);
          quant_pair<2, Kind>(s, g, ps, xg, table);
          quant_pair<3, Kind>(s, g, ps, xg, table);
        }
        g += Kind::kGroupBytes;
      }
      x += R * 64;
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) {
      const uint16_t *scales = (const uint16_t *)(w + p * ps);
      const V scale = vload_f16(scales);
#pragma GCC unroll 16
      for (int r = 0; r < R; r++) {
        float *t = tile + (p * R + r) * 16;
        V v = first && k == 0 ? vzero() : vload(t);
        v = vfma(scale, s[r][p], v);
        if (Kind::kOffset)
          v = vfma(vload_f16(scales + 16), vset(sums[r]), v);
        vstore(t, v);
      }
    }
  }
}

typedef void (*QuantMicro)(const void *x, const float *sums, const void *w, int64_t ps, int64_t K,
                           float *tile, bool first, const Prefetch &prefetch);

template <class Kind, int R> LLMRT_INLINE QuantMicro quant_micro_of(int panels) {
  if constexpr (most_quant_panels(R) >= 8)
    if (panels >= 8)
      return quant_micro<Kind, R, 8>;
  if constexpr (most_quant_panels(R) >= 4)
    if (panels >= 4)
      return quant_micro<Kind, R, 4>;
  if constexpr (most_quant_panels(R) >= 2)
    if (panels >= 2)
      return quant_micro<Kind, R, 2>;
  return quant_micro<Kind, R, 1>;
}
template <class Kind> __attribute__((noinline)) QuantMicro quant_micros(int rows, int panels) {
  switch (rows) {
  case 1:
    return quant_micro_of<Kind, 1>(panels);
  case 2:
    return quant_micro_of<Kind, 2>(panels);
#if LLMRT_SIMD_LEVEL >= 1
  case 3:
    return quant_micro_of<Kind, 3>(panels);
  case 4:
    return quant_micro_of<Kind, 4>(panels);
  case 5:
    return quant_micro_of<Kind, 5>(panels);
  case 6:
    return quant_micro_of<Kind, 6>(panels);
#endif
#if LLMRT_SIMD_LEVEL >= 2
  case 7:
    return quant_micro_of<Kind, 7>(panels);
  case 8:
    return quant_micro_of<Kind, 8>(panels);
  case 9:
    return quant_micro_of<Kind, 9>(panels);
  case 10:
    return quant_micro_of<Kind, 10>(panels);
  case 11:
    return quant_micro_of<Kind, 11>(panels);
  case 12:
    return quant_micro_of<Kind, 12>(panels);
#endif
  }
  __builtin_unreachable();
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
