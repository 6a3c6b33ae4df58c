// The kernels that work on one row at a time: norms, rope, activations, addition, conversions.

namespace llmrt::cpu::LLMRT_ISA_NS {

// Sum of squares in four chains of 16 lanes, always the same ones for the same H.
LLMRT_INLINE float inverse_rms(const float *x, float eps, int64_t H) {
  V s[4] = {vzero(), vzero(), vzero(), vzero()};
  int64_t i = 0;
  for (; i + 64 <= H; i += 64)
    for (int j = 0; j < 4; j++) {
      const V v = vload(x + i + 16 * j);
      s[j] = vfma(v, v, s[j]);
    }
  for (int j = 0; i < H; i += 16, j++) {
    const V v = i + 16 <= H ? vload(x + i) : vload_n(x + i, H - i);
    s[j] = vfma(v, v, s[j]);
  }
  const float sum = vsum(vadd(vadd(s[0], s[1]), vadd(s[2], s[3])));
  return 1.0f / __builtin_sqrtf(sum / (float)H + eps);
}

LLMRT_INLINE void scale_by_weight(float *out, const float *x, const float *w, float inv, float offset,
                                  int64_t H) {
  const V iv = vset(inv), off = vset(offset);
  int64_t i = 0;
  for (; i + 16 <= H; i += 16)
    vstore(out + i, vmul(vmul(vload(x + i), iv), vadd(vload(w + i), off)));
  if (i < H)
    vstore_n(out + i, vmul(vmul(vload_n(x + i, H - i), iv), vadd(vload_n(w + i, H - i), off)), H - i);
}

static void rms_norm_row(float *out, const float *in, const float *weight, float eps, float offset,
                         int64_t H) {
  scale_by_weight(out, in, weight, inverse_rms(in, eps, H), offset, H);
}

static void add_row(float *out, const float *a, const float *b, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    vstore(out + i, vadd(vload(a + i), vload(b + i)));
  if (i < n)
    vstore_n(out + i, vadd(vload_n(a + i, n - i), vload_n(b + i, n - i)), n - i);
}

static void add_rms_norm_row(float *out, float *residual, const float *in, const float *weight, float eps,
                             float offset, int64_t H) {
  add_row(residual, residual, in, H);
  rms_norm_row(out, residual, weight, eps, offset, H);
}

static void scale_row(float *x, float scale, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    vstore(x + i, vmul(vload(x + i), vset(scale)));
  if (i < n)
    vstore_n(x + i, vmul(vload_n(x + i, n - i), vset(scale)), n - i);
}

LLMRT_INLINE void turn(V *x, V *y, V c, V s) { // (x, y) by the angle: x c - y s, y c + x s
  const V nx = vfnma(*y, s, vmul(*x, c));
  *y = vfma(*x, s, vmul(*y, c));
  *x = nx;
}

static void rope_rows(const Rope &p, int64_t t0, int64_t t1) {
  const int64_t half = p.rotary_dim / 2;
  for (int64_t t = t0; t < t1; t++) {
    const float *cos = p.table + t * 2 * half, *sin = cos + half;
    for (int64_t h = 0; h < p.heads; h++) {
      float *x = p.x + t * p.x_stride + h * p.head_dim;
      if (p.norm_weight)
        rms_norm_row(x, x, p.norm_weight, p.norm_eps, p.norm_weight_offset, p.head_dim);
      if (!p.table)
        continue;
      if (p.style == RopeStyle::halves) {
        int64_t i = 0;
        for (; i + 16 <= half; i += 16) {
          V a = vload(x + i), b = vload(x + half + i);
          turn(&a, &b, vload(cos + i), vload(sin + i));
          vstore(x + i, a);
          vstore(x + half + i, b);
        }
        if (const int64_t n = half - i; n > 0) {
          V a = vload_n(x + i, n), b = vload_n(x + half + i, n);
          turn(&a, &b, vload_n(cos + i, n), vload_n(sin + i, n));
          vstore_n(x + i, a, n);
          vstore_n(x + half + i, b, n);
        }
      } else {
        for (int64_t i = 0; i < half; i++) {
          const float a = x[2 * i], b = x[2 * i + 1];
          x[2 * i] = a * cos[i] - b * sin[i];
          x[2 * i + 1] = b * cos[i] + a * sin[i];
        }
      }
    }
  }
}

LLMRT_INLINE V silu(V x) {
  return vdiv(x, vadd(vset(1.0f), vexp(vsub(vzero(), x))));
}
LLMRT_INLINE V gelu_tanh(V x) {
  const V u = vmul(vset(0.7978845608f), vfma(vmul(vmul(x, x), x), vset(0.044715f), x));
  return vmul(vmul(vset(0.5f), x), vadd(vset(1.0f), vtanh(u)));
}
LLMRT_INLINE V gelu(V x) {
  float t[16];
  vstore(t, x);
  for (int i = 0; i < 16; i++)
    t[i] = 0.5f * t[i] * (1.0f + __builtin_erff(t[i] * 0.70710678118f));
  return vload(t);
}

template <V (*F)(V)> LLMRT_INLINE void gate_with(float *out, const float *gate, const float *up, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    vstore(out + i, vmul(F(vload(gate + i)), vload(up + i)));
  if (i < n)
    vstore_n(out + i, vmul(F(vload_n(gate + i, n - i)), vload_n(up + i, n - i)), n - i);
}

static void gated_act_row(Act act, float *out, const float *gate, const float *up, int64_t n) {
  switch (act) {
  case Act::silu:
    return gate_with<silu>(out, gate, up, n);
  case Act::gelu_tanh:
    return gate_with<gelu_tanh>(out, gate, up, n);
  case Act::gelu:
    return gate_with<gelu>(out, gate, up, n);
  }
}

static void exp_row(float *out, const float *in, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    vstore(out + i, vexp(vload(in + i)));
  if (i < n)
    vstore_n(out + i, vexp(vload_n(in + i, n - i)), n - i);
}

static void to_f32_row(float *out, const void *in, DType t, int64_t n) {
  const int64_t es = (int64_t)dtype_bytes(t);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    vstore(out + i, load_as_f32((const char *)in + i * es, t, 16));
  if (i < n)
    vstore_n(out + i, load_as_f32((const char *)in + i * es, t, n - i), n - i);
}

static void from_f32_row(void *out, DType t, const float *in, int64_t n) {
  int64_t i = 0;
  if (t == DType::f32) {
    memmove(out, in, (size_t)n * 4);
    return;
  }
  uint16_t *h = (uint16_t *)out;
  for (; i + 16 <= n; i += 16) {
    if (t == DType::bf16)
      vstore_bf16(h + i, vload(in + i));
    else
      vstore_f16(h + i, vload(in + i));
  }
  if (i < n) {
    uint16_t tail[16];
    if (t == DType::bf16)
      vstore_bf16(tail, vload_n(in + i, n - i));
    else
      vstore_f16(tail, vload_n(in + i, n - i));
    memcpy(h + i, tail, (size_t)(n - i) * 2);
  }
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
