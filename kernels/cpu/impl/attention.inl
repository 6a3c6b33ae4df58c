// Attention of one block of query rows that share a KV head: scores and values are small products on the
// micro kernels of gemm.inl, over blocks of 64 keys brought to f32 in scratch (keys transposed).
//
// The order of every sum is tied to absolute key positions: blocks of kKeyBlock keys in an online softmax
// that restarts every kSplitKeys keys, the parts merged in order. A masked key adds an exact zero and a
// wholly masked block changes nothing, so blocks outside a row's range may be visited or skipped alike.

namespace llmrt::cpu::LLMRT_ISA_NS {

constexpr float kNoScore = -1e30f; // below any score, and finite, so that differences of it are no NaN

struct AttentionScratch {
  int64_t hdp;                      // head_dim rounded up to 16
  float *q;                         // row blocks of [hdp/16][rows][16], scaled
  float *acc;                       // the same shape: sums of this split
  float *total;                     // the same shape: sums of all splits so far
  float *m, *l, *total_m, *total_l; // [rows]
  float *s;                         // scores of one row block [kKeyBlock/16][rows][16]
  float *keys;   // [kKeyBlock/16][hdp][16], or for bf16 pages pairs of bf16: [kKeyBlock/16][hdp/2][16][2]
  float *values; // [kKeyBlock][hdp]; not used when a few rows read the values where they lie
};

static size_t attention_item_scratch(int64_t head_dim) {
  const int64_t hdp = iceil(head_dim, 16) * 16, rows = kMaxAttentionRows;
  const int64_t floats =
      3 * rows * hdp + 4 * iceil(rows, 16) * 16 + kMaxRows * kKeyBlock + 2 * kKeyBlock * hdp;
  return (size_t)floats * 4;
}

LLMRT_INLINE AttentionScratch carve(void *scratch, int64_t head_dim) {
  AttentionScratch a;
  a.hdp = iceil(head_dim, 16) * 16;
  const int64_t tile = kMaxAttentionRows * a.hdp, vec = iceil(kMaxAttentionRows, 16) * 16;
  float *p = (float *)scratch;
  a.q = p, p += tile;
  a.acc = p, p += tile;
  a.total = p, p += tile;
  a.m = p, p += vec;
  a.l = p, p += vec;
  a.total_m = p, p += vec;
  a.total_l = p, p += vec;
  a.s = p, p += kMaxRows * kKeyBlock;
  a.keys = p, p += kKeyBlock * a.hdp;
  a.values = p;
  return a;
}

LLMRT_INLINE V load_as_f32(const void *p, DType t, int64_t n) { // n <= 16 elements, zeros after them
  if (t == DType::f32)
    return n == 16 ? vload((const float *)p) : vload_n((const float *)p, n);
  if (n == 16)
    return t == DType::bf16 ? vload_bf16((const uint16_t *)p) : vload_f16((const uint16_t *)p);
  uint16_t h[16] = {};
  for (int64_t i = 0; i < n; i++)
    h[i] = ((const uint16_t *)p)[i];
  return t == DType::bf16 ? vload_bf16(h) : vload_f16(h);
}

// Where the keys and values of one KV head of a sequence lie.
struct HeadRows {
  const char *base; // of the head's keys in page 0
  const int32_t *pages;
  int64_t page_size, page_stride, row_bytes, values_at;
  static HeadRows of(const KvPool &kv, const int32_t *pages, int64_t head) {
    const int64_t row_bytes = kv.head_dim * (int64_t)dtype_bytes(kv.dtype);
    return {(const char *)kv.base + head * kv.page_size * row_bytes,
            pages,
            kv.page_size,
            kv.page_stride_bytes,
            row_bytes,
            (int64_t)kv.kv_heads * kv.page_size * row_bytes};
  }
  __attribute__((always_inline)) const char *key(int64_t pos) const {
    return base + pages[pos / page_size] * page_stride + pos % page_size * row_bytes;
  }
};

// The next block's rows, so that they arrive while this block is worked on; part p of 4.
LLMRT_INLINE void prefetch_rows(const HeadRows &h, int64_t pos, int64_t end, int64_t p) {
  for (int64_t at = pos + p * kKeyBlock / 4; at < imin(end, pos + (p + 1) * kKeyBlock / 4); at++) {
    const char *key = h.key(at);
    for (int64_t d = 0; d < h.row_bytes; d += 64) {
      vprefetch<false>(key + d);
      vprefetch<false>(key + h.values_at + d);
    }
  }
}

// Keys [pos, pos + n) of the head into a.keys, transposed; lanes past n are zero. next_end: end of what
// will be read after this block (nothing beyond it is prefetched).
static void load_keys(const AttentionScratch &a, const HeadRows &h, DType dtype, int64_t hd, int64_t pos,
                      int64_t n, int64_t next_end) {
  const int64_t es = (int64_t)dtype_bytes(dtype);
  // bf16 moves as pairs in 32-bit lanes, the other types are widened first.
  const int64_t per_vector = dtype == DType::bf16 ? 32 : 16;
  for (int64_t p = 0; p < kKeyBlock / 16; p++) {
    prefetch_rows(h, pos + kKeyBlock, next_end, p);
    if (p * 16 >= n)
      continue;
    const char *key[16];
    const int64_t in_panel = imin(16, n - p * 16);
    for (int64_t i = 0; i < in_panel; i++)
      key[i] = h.key(pos + p * 16 + i);
    float *dst = a.keys + p * a.hdp * (dtype == DType::bf16 ? 8 : 16);
    for (int64_t d = 0; d < hd; d += per_vector, dst += 256) {
      const int64_t nd = imin(per_vector, hd - d);
      V rows[16];
      for (int64_t i = 0; i < 16; i++) {
        if (i >= in_panel) {
          rows[i] = vzero();
        } else if (dtype != DType::bf16) {
          rows[i] = load_as_f32(key[i] + d * es, dtype, nd);
        } else if (nd == 32) {
          rows[i] = vload((const float *)(key[i] + d * 2));
        } else {
          float pairs[16] = {};
          memcpy(pairs, key[i] + d * 2, (size_t)nd * 2);
          rows[i] = vload(pairs);
        }
      }
      if (dtype == DType::bf16 && a.hdp - d < 32) { // the last half vector: 8 pairs
        float t[256];
        transpose16(t, rows);
        memcpy(dst, t, 128 * sizeof(float));
      } else {
        transpose16(dst, rows);
      }
    }
  }
}

// Values [pos, pos + n) of the head into a.values.
static void load_values(const AttentionScratch &a, const HeadRows &h, DType dtype, int64_t hd, int64_t pos,
                        int64_t n) {
  const int64_t es = (int64_t)dtype_bytes(dtype);
  for (int64_t i = 0; i < n; i++) {
    const char *value = h.key(pos + i) + h.values_at;
    for (int64_t d = 0; d < hd; d += 16)
      vstore(a.values + i * a.hdp + d, load_as_f32(value + d * es, dtype, imin(16, hd - d)));
  }
}

struct RowRange { // keys [lo, hi) that a row may see
  int64_t lo, hi;
};

// One online-softmax step of a row block: s [panels][rows][16] holds scores and becomes probabilities; m, l
// and acc are brought up to date but for the values' product.
static void softmax_step(const AttentionScratch &a, float *acc, float *m, float *l, const RowRange *range,
                         int64_t rows, int64_t block, int64_t panels, float softcap) {
  float scale[16], m_new[16];
  for (int64_t r = 0; r < rows; r++) {
    V top = vset(kNoScore);
    for (int64_t p = 0; p < panels; p++) {
      float *s = a.s + (p * rows + r) * 16;
      V v = vload(s);
      if (softcap != 0)
        v = vmul(vset(softcap), vtanh(vdiv(v, vset(softcap))));
      const int64_t base = block + p * 16;
      v = vkeep(v, range[r].lo - base, range[r].hi - base, vset(-__builtin_inff()));
      vstore(s, v);
      top = vmax(top, v);
    }
    const float t = vmaxlane(top);
    m_new[r] = m[r] > t ? m[r] : t;
  }
  for (int64_t r = rows; r < 16; r++)
    m_new[r] = 0;
  vstore(scale, vexp(vsub(vload_n(m, rows), vload(m_new))));
  for (int64_t r = 0; r < rows; r++) {
    const V mv = vset(m_new[r]);
    V sum = vzero();
    for (int64_t p = 0; p < panels; p++) {
      float *s = a.s + (p * rows + r) * 16;
      const V e = vexp(vsub(vload(s), mv));
      vstore(s, e);
      sum = vadd(sum, e);
    }
    l[r] = l[r] * scale[r] + vsum(sum);
    m[r] = m_new[r];
    if (scale[r] != 1.0f)
      for (int64_t d = 0; d < a.hdp / 16; d++) {
        float *o = acc + (d * rows + r) * 16;
        vstore(o, vmul(vload(o), vset(scale[r])));
      }
  }
}

// tile [panels][rows][16] (+)= x . panels, `ps` and `ks` in bytes.
template <class Kind>
LLMRT_INLINE void run_micro(int rows, int64_t panels, const float *x, const void *w, int64_t ps, int64_t ks,
                            int64_t K, float *tile, bool first) {
  for (int64_t p = 0; p < panels;) {
    int n = most_panels(rows);
    while (n > panels - p)
      n /= 2;
    micros<Kind>(rows, n)(x, (const char *)w + p * ps, ps, ks, K, tile + p * rows * 16, first, kNoPrefetch);
    p += n;
  }
}

// acc += probabilities . values, the values read where they lie, page by page. head_dim is a multiple of 16.
template <class Kind>
static void add_values_in_place(const HeadRows &h, int64_t panels, const float *s, float *acc, int64_t rows,
                                int64_t pos, int64_t n) {
  for (int64_t i = 0; i < n;) { // pieces end with the page and with the chunk of 16 probabilities
    const int64_t piece = imin(imin(n - i, 16 - i % 16), h.page_size - (pos + i) % h.page_size);
    run_micro<Kind>((int)rows, panels, s + i / 16 * rows * 16 + i % 16, h.key(pos + i) + h.values_at,
                    Kind::kStepBytes, h.row_bytes, piece, acc, false);
    i += piece;
  }
}

// (m, l, acc) of a row += (m1, l1, acc1): the merge of two softmax parts. Vectors at stride `step` floats.
LLMRT_INLINE void merge_row(float *m, float *l, float *acc, int64_t step, float m1, float l1,
                            const float *acc1, int64_t step1, int64_t hd) {
  const float top = *m > m1 ? *m : m1;
  float e[16] = {*m - top, m1 - top};
  vstore(e, vexp(vload(e)));
  *m = top;
  *l = *l * e[0] + l1 * e[1];
  for (int64_t d = 0; d < hd; d += 16, acc += step, acc1 += step1) {
    const int64_t n = imin(16, hd - d);
    if (n == 16)
      vstore(acc, vfma(vload(acc1), vset(e[1]), vmul(vload(acc), vset(e[0]))));
    else
      vstore_n(acc, vfma(vload_n(acc1, n), vset(e[1]), vmul(vload_n(acc, n), vset(e[0]))), n);
  }
}

LLMRT_INLINE void write_row(const PagedAttention &p, int64_t row, int64_t head, const float *acc,
                            int64_t step, float l) {
  const int64_t hd = p.kv.head_dim;
  float *out = p.out + row * p.out_stride + head * hd;
  const V inv = vset(1.0f / l);
  for (int64_t d = 0; d < hd; d += 16, acc += step) {
    const int64_t n = imin(16, hd - d);
    if (n == 16)
      vstore(out + d, vmul(vload(acc), inv));
    else
      vstore_n(out + d, vmul(vload_n(acc, n), inv), n);
  }
}

static void attention_item(const AttentionCall &c, const AttentionItem &it, void *scratch) {
  const PagedAttention &p = *c.p;
  const int64_t hd = p.kv.head_dim;
  const AttentionScratch a = carve(scratch, hd);
  const int32_t *heads = c.group_heads + c.group_start[it.kv_head];
  const int64_t group = c.group_start[it.kv_head + 1] - c.group_start[it.kv_head];
  const int64_t first_row = p.seq_starts[it.seq], context = p.context_lens[it.seq];
  const int64_t past = context - (p.seq_starts[it.seq + 1] - first_row);
  const HeadRows kv = HeadRows::of(p.kv, p.page_table + it.seq * p.page_table_stride, it.kv_head);
  const DType dtype = p.kv.dtype;
  const int64_t blocks = iceil(it.rows, kMaxRows), block_rows = iceil(it.rows, blocks), panels_v = a.hdp / 16;
  const bool in_place = blocks == 1 && hd % 16 == 0; // values: too few rows to be worth a copy

  RowRange range[kMaxAttentionRows];
  for (int64_t i = 0; i < it.rows; i++) {
    const int64_t f = it.row0 + i, token = f / group, pos = past + token;
    const int32_t head = heads[f % group];
    range[i] = {p.window > 0 ? imax(0, pos - p.window + 1) : 0, pos + 1};
    const int64_t b = i / block_rows, rows = imin(block_rows, it.rows - b * block_rows);
    const float *q = p.q + (first_row + token) * p.q_stride + head * hd;
    float *dst = a.q + b * block_rows * a.hdp + (i - b * block_rows) * 16;
    for (int64_t d = 0; d < hd; d += 16, dst += rows * 16) {
      const int64_t n = imin(16, hd - d);
      vstore(dst, vmul(n == 16 ? vload(q + d) : vload_n(q + d, n), vset(p.scale)));
    }
    a.total_m[i] = p.sinks ? p.sinks[head] : kNoScore;
    a.total_l[i] = p.sinks ? 1.0f : 0.0f;
  }
  for (int64_t i = 0; i < it.rows * a.hdp; i += 16)
    vstore(a.total + i, vzero());

  const int64_t lo = range[0].lo, hi = range[it.rows - 1].hi; // positions grow with the row
  for (int64_t split = it.split0; split < it.split1; split++) {
    for (int64_t i = 0; i < it.rows; i++) {
      a.m[i] = kNoScore;
      a.l[i] = 0;
    }
    for (int64_t i = 0; i < it.rows * a.hdp; i += 16)
      vstore(a.acc + i, vzero());
    const int64_t end = imin(hi, (split + 1) * kSplitKeys);
    for (int64_t block = imax(split * kSplitKeys, lo / kKeyBlock * kKeyBlock); block < end;
         block += kKeyBlock) {
      const int64_t n = imin(kKeyBlock, end - block), panels = iceil(n, 16);
      load_keys(a, kv, dtype, hd, block, n, imin(hi, it.split1 * kSplitKeys));
      if (!in_place)
        load_values(a, kv, dtype, hd, block, n);
      for (int64_t b = 0; b < blocks; b++) {
        const int64_t row0 = b * block_rows, rows = imin(block_rows, it.rows - row0);
        if (range[row0 + rows - 1].hi <= block || range[row0].lo >= block + n)
          continue; // hidden from all of them, as ranges only move up from row to row
        float *acc = a.acc + row0 * a.hdp;
        const float *q = a.q + row0 * a.hdp;
        if (dtype == DType::bf16)
          run_micro<PanelBF16>((int)rows, panels, q, a.keys, a.hdp * 32, 64, hd, a.s, true);
        else
          run_micro<PanelF32>((int)rows, panels, q, a.keys, a.hdp * 64, 64, hd, a.s, true);
        softmax_step(a, acc, a.m + row0, a.l + row0, range + row0, rows, block, panels, p.softcap);
        if (!in_place)
          run_micro<PanelF32>((int)rows, panels_v, a.s, a.values, 64, a.hdp * 4, n, acc, false);
        else if (dtype == DType::f32)
          add_values_in_place<PanelF32>(kv, panels_v, a.s, acc, rows, block, n);
        else if (dtype == DType::bf16)
          add_values_in_place<RowsBF16>(kv, panels_v, a.s, acc, rows, block, n);
        else
          add_values_in_place<PanelF16>(kv, panels_v, a.s, acc, rows, block, n);
      }
    }
    for (int64_t i = 0; i < it.rows; i++) {
      const int64_t b = i / block_rows, rows = imin(block_rows, it.rows - b * block_rows);
      const int64_t at = b * block_rows * a.hdp + (i - b * block_rows) * 16;
      if (it.partial) {
        float *out = it.partial + ((split - it.split0) * it.rows + i) * partial_stride(hd);
        out[0] = a.m[i];
        out[1] = a.l[i];
        for (int64_t d = 0; d < hd; d += 16) {
          const V v = vload(a.acc + at + d * rows);
          if (d + 16 <= hd)
            vstore(out + 2 + d, v);
          else
            vstore_n(out + 2 + d, v, hd - d);
        }
      } else {
        merge_row(a.total_m + i, a.total_l + i, a.total + at, rows * 16, a.m[i], a.l[i], a.acc + at,
                  rows * 16, a.hdp);
      }
    }
  }
  if (it.partial)
    return;
  for (int64_t i = 0; i < it.rows; i++) {
    const int64_t b = i / block_rows, rows = imin(block_rows, it.rows - b * block_rows), f = it.row0 + i;
    write_row(p, first_row + f / group, heads[f % group],
              a.total + b * block_rows * a.hdp + (i - b * block_rows) * 16, rows * 16, a.total_l[i]);
  }
}

// Writes the rows of an item whose `splits` parts lie in item.partial, [splits][rows][partial_stride].
static void attention_merge(const AttentionCall &c, const AttentionItem &it, int64_t splits) {
  const PagedAttention &p = *c.p;
  const int64_t hd = p.kv.head_dim, stride = partial_stride(hd);
  const int32_t *heads = c.group_heads + c.group_start[it.kv_head];
  const int64_t group = c.group_start[it.kv_head + 1] - c.group_start[it.kv_head];
  for (int64_t i = 0; i < it.rows; i++) {
    const int64_t f = it.row0 + i;
    const int32_t head = heads[f % group];
    // The first part's place takes the total; it starts from nothing, or from the sink.
    float *total = it.partial + i * stride;
    const float m1 = total[0], l1 = total[1];
    float m = p.sinks ? p.sinks[head] : kNoScore, l = p.sinks ? 1.0f : 0.0f;
    const float top = m > m1 ? m : m1;
    float e[16] = {m - top, m1 - top};
    vstore(e, vexp(vload(e)));
    m = top;
    l = l * e[0] + l1 * e[1];
    for (int64_t d = 0; d < hd; d += 16) {
      const int64_t n = imin(16, hd - d);
      const V v = n == 16 ? vload(total + 2 + d) : vload_n(total + 2 + d, n);
      const V t = vfma(v, vset(e[1]), vzero());
      if (n == 16)
        vstore(total + 2 + d, t);
      else
        vstore_n(total + 2 + d, t, n);
    }
    for (int64_t s = 1; s < splits; s++) {
      const float *part = it.partial + (s * it.rows + i) * stride;
      merge_row(&m, &l, total + 2, 16, part[0], part[1], part + 2, 16, hd);
    }
    write_row(p, p.seq_starts[it.seq] + f / group, head, total + 2, 16, l);
  }
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
