// The product's innermost loops: R rows of packed x times P panels of 16 outputs, all sums in registers.
// Every output element is one chain of multiply-adds over k = 0, 1, 2 ..., whatever R, P and the blocking
// of K are: sums are stored to a tile between blocks of K and taken up again, which changes no bit.

namespace llmrt::cpu::LLMRT_ISA_NS {

#if LLMRT_SIMD_LEVEL >= 2
constexpr int kMaxRows = 14; // 28 sums + 2 weights + 1 element of x in 32 registers
constexpr int most_panels(int rows) {
  return rows <= 2 ? 8 : rows <= 6 ? 4 : 2;
}
#elif LLMRT_SIMD_LEVEL == 1
constexpr int kMaxRows = 6; // 12 sums + 2 weights + 1 element of x in 16 registers
constexpr int most_panels(int rows) {
  return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}
#else
constexpr int kMaxRows = 2;
constexpr int most_panels(int rows) {
  return rows == 1 ? 2 : 1;
}
#endif

// Kinds of weight panels. kChunk: elements of x per 64-byte chunk; kStep: elements of K per step.
// (Quantised ones are in gemm_quant.inl.)
struct PanelF32 {
  typedef float X;
  static constexpr bool kQuantized = false;
  static constexpr int kChunk = 16, kStep = 1;
  static constexpr int64_t kStepBytes = 64; // of one panel
};
struct PanelF16 {
  typedef float X;
  static constexpr bool kQuantized = false;
  static constexpr int kChunk = 16, kStep = 1;
  static constexpr int64_t kStepBytes = 32;
};
struct RowsBF16 { // 16 elements of a row-major matrix as they lie
  typedef float X;
  static constexpr bool kQuantized = false;
  static constexpr int kChunk = 16, kStep = 1;
  static constexpr int64_t kStepBytes = 32;
};
struct PanelBF16 {
  typedef float X;
  static constexpr bool kQuantized = false;
  static constexpr int kChunk = 16, kStep = 2;
  static constexpr int64_t kStepBytes = 64;
};
#if LLMRT_SIMD_LEVEL >= 3
struct PanelBF16Dot { // x in bf16, two products per lane and instruction
  typedef uint16_t X;
  static constexpr bool kQuantized = false;
  static constexpr int kChunk = 32, kStep = 2;
  static constexpr int64_t kStepBytes = 64;
};
typedef PanelBF16Dot PanelBF16Best;
#else
typedef PanelBF16 PanelBF16Best;
#endif

LLMRT_INLINE V load_step(PanelF32, const char *w) {
  return vload((const float *)w);
}
LLMRT_INLINE V load_step(PanelF16, const char *w) {
  return vload_f16((const uint16_t *)w);
}
LLMRT_INLINE V load_step(RowsBF16, const char *w) {
  return vload_bf16((const uint16_t *)w);
}

template <class Kind, int R, int P>
LLMRT_INLINE void step(Kind, V (&s)[R][P], const char *w, int64_t ps, const float *x) {
  V wv[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; p++)
    wv[p] = load_step(Kind(), w + p * ps);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    const V xv = vset(x[r * 16]);
#pragma GCC unroll 8
    for (int p = 0; p < P; p++)
      s[r][p] = vfma(xv, wv[p], s[r][p]);
  }
}
template <int R, int P>
LLMRT_INLINE void step(PanelBF16, V (&s)[R][P], const char *w, int64_t ps, const float *x) {
  V wv[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; p++)
    wv[p] = vload_even_bf16((const uint16_t *)(w + p * ps));
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    const V xv = vset(x[r * 16]);
#pragma GCC unroll 8
    for (int p = 0; p < P; p++)
      s[r][p] = vfma(xv, wv[p], s[r][p]);
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; p++)
    wv[p] = vload_odd_bf16((const uint16_t *)(w + p * ps));
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    const V xv = vset(x[r * 16 + 1]);
#pragma GCC unroll 8
    for (int p = 0; p < P; p++)
      s[r][p] = vfma(xv, wv[p], s[r][p]);
  }
}
#if LLMRT_SIMD_LEVEL >= 3
template <int R, int P>
LLMRT_INLINE void step(PanelBF16Dot, V (&s)[R][P], const char *w, int64_t ps, const uint16_t *x) {
  __m512i wv[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; p++)
    wv[p] = _mm512_loadu_si512(w + p * ps);
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) {
    int32_t pair;
    memcpy(&pair, x + r * 32, 4);
    const __m512i xv = _mm512_set1_epi32(pair);
#pragma GCC unroll 8
    for (int p = 0; p < P; p++)
      s[r][p] = _mm512_dpbf16_ps(s[r][p], (__m512bh)xv, (__m512bh)wv[p]);
  }
}
#endif

// Weights to ask for while a micro kernel runs: P lines per step (panels `ps` apart, like the kernel's own)
// from `at` on, for `steps` steps, moving by `jump` bytes more after `before_jump` of them.
struct Prefetch {
  const char *at;
  int64_t steps, before_jump, jump;
};
constexpr Prefetch kNoPrefetch = {nullptr, 0, 0, 0};

// tile [P][R][16] (+)= x [ceil(K/chunk)][R][chunk] . panels; w: first step of the first panel, the panels
// `ps` bytes apart and the steps of one `ks` bytes. K counts elements; an odd one is padded in w and x.
template <class Kind, int R, int P>
__attribute__((noinline)) void micro(const void *xp, const void *wp, int64_t ps, int64_t ks, int64_t K,
                                     float *tile, bool first, const Prefetch &prefetch) {
  typedef typename Kind::X X;
  V s[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int p = 0; p < P; p++)
      s[r][p] = first ? vzero() : vload(tile + (p * R + r) * 16);
  const X *x = (const X *)xp;
  const char *w = (const char *)wp, *wanted = prefetch.at;
  int64_t wanted_steps = prefetch.steps, before_jump = prefetch.before_jump;
  for (int64_t k = 0; k < K; k += Kind::kChunk) {
    const int64_t steps = (imin(Kind::kChunk, K - k) + Kind::kStep - 1) / Kind::kStep;
    if (wanted_steps > 0) {
      for (int64_t i = 0; i < steps; i++) {
#pragma GCC unroll 8
        for (int p = 0; p < P; p++)
          vprefetch<(R <= 8)>(wanted + p * ps);
        step(Kind(), s, w, ps, x + i * Kind::kStep);
        w += ks;
        wanted += ks;
      }
      wanted_steps -= steps;
      if (before_jump > 0 && (before_jump -= steps) <= 0)
        wanted += prefetch.jump;
    } else {
      for (int64_t i = 0; i < steps; i++) {
        step(Kind(), s, w, ps, x + i * Kind::kStep);
        w += ks;
      }
    }
    x += R * Kind::kChunk;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int p = 0; p < P; p++)
      vstore(tile + (p * R + r) * 16, s[r][p]);
}

typedef void (*Micro)(const void *x, const void *w, int64_t ps, int64_t ks, int64_t K, float *tile,
                      bool first, const Prefetch &prefetch);

// micros<Kind>(rows, panels): the function for exactly that many rows and 1, 2, 4 or 8 panels.
template <class Kind, int R> LLMRT_INLINE Micro micro_of(int panels) {
  if constexpr (most_panels(R) >= 8)
    if (panels >= 8)
      return micro<Kind, R, 8>;
  if constexpr (most_panels(R) >= 4)
    if (panels >= 4)
      return micro<Kind, R, 4>;
  if constexpr (most_panels(R) >= 2)
    if (panels >= 2)
      return micro<Kind, R, 2>;
  return micro<Kind, R, 1>;
}
template <class Kind> __attribute__((noinline)) Micro micros(int rows, int panels) {
  switch (rows) {
  case 1:
    return micro_of<Kind, 1>(panels);
  case 2:
    return micro_of<Kind, 2>(panels);
#if LLMRT_SIMD_LEVEL >= 1
  case 3:
    return micro_of<Kind, 3>(panels);
  case 4:
    return micro_of<Kind, 4>(panels);
  case 5:
    return micro_of<Kind, 5>(panels);
  case 6:
    return micro_of<Kind, 6>(panels);
#endif
#if LLMRT_SIMD_LEVEL >= 2
  case 7:
    return micro_of<Kind, 7>(panels);
  case 8:
    return micro_of<Kind, 8>(panels);
  case 9:
    return micro_of<Kind, 9>(panels);
  case 10:
    return micro_of<Kind, 10>(panels);
  case 11:
    return micro_of<Kind, 11>(panels);
  case 12:
    return micro_of<Kind, 12>(panels);
  case 13:
    return micro_of<Kind, 13>(panels);
  case 14:
    return micro_of<Kind, 14>(panels);
#endif
  }
  __builtin_unreachable();
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
