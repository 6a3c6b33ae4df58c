// Attention of one block of query rows that share a KV head: scores and values are small products on the
// micro kernels of gemm.inl, over blocks of 64 keys brought to f32 in scratch (keys transposed).
//
// The order of every sum is tied to absolute key positions: blocks of kKeyBlock keys in an online softmax
// that restarts every kSplitKeys keys, the parts merged in order. A masked key adds an exact zero and a
// wholly masked block changes nothing, so blocks outside a row's range may be visited or skipped alike.

namespace llmrt::cpu::LLMRT_ISA_NS {

constexpr float kNoScore = -1e30f; // below any score, and finite, so that differences of it are no NaN

struct AttentionScratch {
  int64_t hdp;   // head_dim rounded up to 16
  float *q;      // row blocks of [hdp/16][rows][16], scaled
  float *acc;    // the same shape: sums of this split
  float *total;  // the same shape: sums of all splits so far
  float *m, *l, *total_m, *total_l; // [rows]
  float *s;      // scores of one row block [kKeyBlock/16][rows][16]
  float *keys;   // [kKeyBlock/16][hdp][16]
  float *values; // [kKeyBlock][hdp]
};

static size_t attention_item_scratch(int64_t head_dim) {
  const int64_t hdp = iceil(head_dim, 16) * 16, rows = kMaxAttentionRows;
  const int64_t floats = 3 * rows * hdp + 4 * iceil(rows, 16) * 16 + kMaxRows * kKeyBlock + 2 * kKeyBlock * hdp;
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

// Keys and values [pos, pos + n) of one KV head into scratch; rows up to the next multiple of 16 are zero.
static void load_block(const AttentionScratch &a, const KvPool &kv, const int32_t *pages, int64_t head, int64_t pos,
                       int64_t n) {
  const int64_t hd = kv.head_dim, row_bytes = hd * (int64_t)dtype_bytes(kv.dtype);
  const int64_t values_at = (int64_t)kv.kv_heads * kv.page_size * row_bytes;
  const int64_t es = (int64_t)dtype_bytes(kv.dtype);
  for (int64_t p = 0; p * 16 < n; p++) {
    const char *key[16];
    const int64_t in_panel = imin(16, n - p * 16);
    for (int64_t i = 0; i < in_panel; i++) {
      const int64_t at = pos + p * 16 + i, page = pages[at / kv.page_size];
      key[i] = (const char *)kv.base + page * kv.page_stride_bytes +
               (head * kv.page_size + at % kv.page_size) * row_bytes;
    }
    for (int64_t d = 0; d < hd; d += 16) {
      const int64_t nd = imin(16, hd - d);
      V rows[16];
      for (int64_t i = 0; i < 16; i++)
        rows[i] = i < in_panel ? load_as_f32(key[i] + d * es, kv.dtype, nd) : vzero();
      transpose16(a.keys + (p * a.hdp + d) * 16, rows);
      for (int64_t i = 0; i < 16; i++)
        vstore(a.values + (p * 16 + i) * a.hdp + d,
               i < in_panel ? load_as_f32(key[i] + values_at + d * es, kv.dtype, nd) : vzero());
    }
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

LLMRT_INLINE void run_micro(int rows, int64_t panels, const float *x, const float *w, int64_t ps, int64_t ks, int64_t K,
                            float *tile, bool first) {
  for (int64_t p = 0; p < panels;) {
    int n = most_panels(rows);
    while (n > panels - p)
      n /= 2;
    micros<PanelF32>(rows, n)(x, w + p * ps, ps * 4, ks * 4, K, tile + p * rows * 16, first, kNoPrefetch);
    p += n;
  }
}

// (m, l, acc) of a row += (m1, l1, acc1): the merge of two softmax parts. Vectors at stride `step` floats.
LLMRT_INLINE void merge_row(float *m, float *l, float *acc, int64_t step, float m1, float l1, const float *acc1,
                            int64_t step1, int64_t hd) {
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

LLMRT_INLINE void write_row(const PagedAttention &p, int64_t row, int64_t head, const float *acc, int64_t step, float l) {
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
  const int32_t *pages = p.page_table + it.seq * p.page_table_stride;
  const int64_t blocks = iceil(it.rows, kMaxRows), block_rows = iceil(it.rows, blocks), panels_v = a.hdp / 16;

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
    for (int64_t block = imax(split * kSplitKeys, lo / kKeyBlock * kKeyBlock); block < end; block += kKeyBlock) {
      const int64_t n = imin(kKeyBlock, end - block), panels = iceil(n, 16);
      load_block(a, p.kv, pages, it.kv_head, block, n);
      for (int64_t b = 0; b < blocks; b++) {
        const int64_t row0 = b * block_rows, rows = imin(block_rows, it.rows - row0);
        if (range[row0 + rows - 1].hi <= block || range[row0].lo >= block + n)
          continue; // hidden from all of them... (rows between are hidden as well, ranges only move up)
        float *acc = a.acc + row0 * a.hdp;
        run_micro((int)rows, panels, a.q + row0 * a.hdp, a.keys, a.hdp * 16, 16, hd, a.s, true);
        softmax_step(a, acc, a.m + row0, a.l + row0, range + row0, rows, block, panels, p.softcap);
        run_micro((int)rows, panels_v, a.s, a.values, 16, a.hdp, n, acc, false);
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
        merge_row(a.total_m + i, a.total_l + i, a.total + at, rows * 16, a.m[i], a.l[i], a.acc + at, rows * 16, a.hdp);
      }
    }
  }
  if (it.partial)
    return;
  for (int64_t i = 0; i < it.rows; i++) {
    const int64_t b = i / block_rows, rows = imin(block_rows, it.rows - b * block_rows), f = it.row0 + i;
    write_row(p, first_row + f / group, heads[f % group], a.total + b * block_rows * a.hdp + (i - b * block_rows) * 16,
              rows * 16, a.total_l[i]);
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
