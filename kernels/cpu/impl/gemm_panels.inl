// A thread's part of a product: packing rows of x, and passing blocks of rows over groups of panels.

namespace llmrt::cpu::LLMRT_ISA_NS {

// Rows of x into the chunked layout that micro reads (see PackedRows).
LLMRT_INLINE void pack_row_f32(float *dst, int64_t chunk_stride, const float *x, int64_t K) {
  int64_t k = 0;
  for (; k + 16 <= K; k += 16, dst += chunk_stride)
    vstore(dst, vload(x + k));
  if (k < K)
    vstore(dst, vload_n(x + k, K - k));
}
#if LLMRT_SIMD_LEVEL >= 3
LLMRT_INLINE void pack_row_bf16(uint16_t *dst, int64_t chunk_stride, const float *x, int64_t K) {
  for (int64_t k = 0; k < K; k += 32, dst += chunk_stride) {
    const int64_t n = K - k;
    const V a = n >= 16 ? vload(x + k) : vload_n(x + k, n);
    const V b = n >= 32 ? vload(x + k + 16) : n > 16 ? vload_n(x + k + 16, n - 16) : vzero();
    _mm512_storeu_si512(dst, (__m512i)_mm512_cvtne2ps_pbh(b, a));
  }
}
#endif

static void pack_rows(const PackedRows &d, DType weight, const float *x, int64_t ldx, int64_t row0,
                      int64_t row1) {
  const bool quantized = is_quantized(weight),
             bf16 = LLMRT_SIMD_LEVEL >= 3 && (quantized || weight == DType::bf16);
  const int64_t chunk = bf16 ? 32 : 16, chunks = iceil(d.K, chunk);
  for (int64_t r = row0; r < row1; r++) {
    const int64_t b = r / d.block_rows, in_block = imin(d.block_rows, d.rows - b * d.block_rows);
    char *dst = (char *)d.data + (b * d.block_rows * chunks + (r - b * d.block_rows)) * 64;
#if LLMRT_SIMD_LEVEL >= 3
    if (bf16)
      pack_row_bf16((uint16_t *)dst, in_block * 32, x + r * ldx, d.K);
#endif
    if (!bf16)
      pack_row_f32((float *)dst, in_block * 16, x + r * ldx, d.K);
    if (quantized) { // of the elements as the product reads them
      float *sums = d.sums + b * d.block_rows * (d.K / 32) + (r - b * d.block_rows);
      for (int64_t k = 0; k < d.K / 32; k++, sums += in_block) {
        const char *c = dst + k * (bf16 ? 1 : 2) * in_block * 64;
        *sums = bf16 ? vsum(vadd(vload_bf16((const uint16_t *)c), vload_bf16((const uint16_t *)c + 16)))
                     : vsum(vadd(vload((const float *)c), vload((const float *)(c + in_block * 64))));
      }
    }
  }
}

// From a tile [P][rows][16] to y, with bias and addend.
static void store_tile(const LinearTask &t, const float *tile, int64_t rows, int panels, int64_t row0,
                       int64_t panel0) {
  for (int p = 0; p < panels; p++) {
    const int64_t n0 = (panel0 + p) * 16, n = imin(16, t.N - n0);
    const V bias = !t.bias ? vzero() : n == 16 ? vload(t.bias + n0) : vload_n(t.bias + n0, n);
    for (int64_t r = 0; r < rows; r++) {
      V v = vload(tile + (p * rows + r) * 16);
      if (t.bias)
        v = vadd(v, bias);
      float *y = t.y + (row0 + r) * t.ldy + n0;
      const float *add = t.add ? t.add + (row0 + r) * t.ld_add + n0 : nullptr;
      if (n == 16) {
        vstore(y, add ? vadd(v, vload(add)) : v);
      } else {
        vstore_n(y, add ? vadd(v, vload_n(add, n)) : v, n);
      }
    }
  }
}

// K is cut so that the panels of a block stay in the near caches while all row blocks pass over them.
constexpr int64_t kMostBlockK = 1024;
// Bytes of each panel to have under way when one pass streams them from memory.
constexpr int64_t ahead_bytes(int panels) {
  return panels >= 4 ? 1536 : 6144 / panels;
}

template <class Kind>
static void linear_panels_of(const LinearTask &t, int64_t panel0, int64_t panel1, float *tile) {
  const PackedRows &x = t.x;
  const int64_t k2 = t.dtype == DType::f32 ? x.K : (x.K + 1) / 2 * 2, steps = iceil(x.K, Kind::kStep);
  const int64_t panel_bytes =
      Kind::kQuantized ? steps * Kind::kStepBytes : 16 * k2 * (int64_t)dtype_bytes(t.dtype);
  const int64_t chunks = iceil(x.K, Kind::kChunk), blocks = iceil(x.rows, x.block_rows);
  const int64_t k_blocks = blocks == 1 ? 1 : iceil(x.K, kMostBlockK);
  const int64_t block_k = iceil(iceil(x.K, k_blocks), 32) * 32;
  int64_t p = panel0;
  while (p < panel1) {
    int panels = Kind::kQuantized ? most_quant_panels((int)imin(x.block_rows, x.rows))
                                  : most_panels((int)imin(x.block_rows, x.rows));
    while (panels > panel1 - p)
      panels /= 2;
    const char *group = (const char *)t.w + p * panel_bytes;
    for (int64_t k = 0; k < x.K; k += block_k) {
      const char *w = group + k / Kind::kStep * Kind::kStepBytes;
      const int64_t kn = imin(block_k, x.K - k);
      const bool last = k + block_k >= x.K;
      // One block of rows: keep some lines ahead in these panels, then in the next ones. Several: each asks
      // for its share of what they read next (a harmless address past the end at the very end).
      const int64_t ahead = iceil(ahead_bytes(panels), Kind::kStepBytes);
      const char *next = last ? group + panels * panel_bytes : w + kn / Kind::kStep * Kind::kStepBytes;
      const int64_t share = iceil(iceil(kn, Kind::kStep), blocks);
      for (int64_t b = 0; b < blocks; b++) {
        const int64_t row0 = b * x.block_rows, rows = imin(x.block_rows, x.rows - row0);
        const char *xb = (const char *)x.data + (row0 * chunks + k / Kind::kChunk * rows) * 64;
        float *c = tile + row0 * panels * 16;
        const Prefetch prefetch = blocks == 1 ? Prefetch{w + ahead * Kind::kStepBytes, steps,
                                                         imax(1, steps - ahead), (panels - 1) * panel_bytes}
                                              : Prefetch{next + b * share * Kind::kStepBytes, share, 0, 0};
        if constexpr (Kind::kQuantized)
          quant_micros<Kind>((int)rows, panels)(xb, x.sums + row0 * steps + k / 32 * rows, w, panel_bytes, kn,
                                                c, k == 0, prefetch);
        else
          micros<Kind>((int)rows, panels)(xb, w, panel_bytes, Kind::kStepBytes, kn, c, k == 0, prefetch);
        if (last)
          store_tile(t, c, rows, panels, row0, p);
      }
    }
    p += panels;
  }
}

static void linear_panels(const LinearTask &t, int64_t panel0, int64_t panel1, float *tile) {
  switch (t.dtype) {
  case DType::f32:
    return linear_panels_of<PanelF32>(t, panel0, panel1, tile);
  case DType::bf16:
    return linear_panels_of<PanelBF16Best>(t, panel0, panel1, tile);
  case DType::f16:
    return linear_panels_of<PanelF16>(t, panel0, panel1, tile);
  case DType::q8_0:
    return linear_panels_of<QuantQ8_0>(t, panel0, panel1, tile);
  case DType::q4_1:
    return linear_panels_of<QuantQ4_1>(t, panel0, panel1, tile);
  }
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
