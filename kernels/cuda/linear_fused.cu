// Products of few rows together with what stands before and after them: at decode every launch costs a layer about two
// microseconds, as much as a small product itself.
#include "kernels/cuda/linear_mma.cuh"

namespace llmrt::cuda {

namespace {

// The shapes that choose_linear_shape() has for up to kSkinnyMaxRows rows.
template <typename W, bool kNorm, bool kPaired, int kTiles>
void run_shape(const MmaParams &p, const LinearShape &shape, cudaStream_t stream) {
  if (shape.row_tiles == 1)
    launch_mma<W, 1, kTiles, 4, kNorm, kPaired>(p, shape, stream);
  else if (shape.stages == 3)
    launch_mma<W, 2, kTiles, 3, kNorm, kPaired>(p, shape, stream);
  else
    launch_mma<W, 2, kTiles, 4, kNorm, kPaired>(p, shape, stream);
}

template <typename W, bool kNorm, bool kPaired>
void run(const MmaParams &p, const LinearShape &shape, cudaStream_t stream) {
  if (p.M <= 8)
    run_shape<W, kNorm, kPaired, 1>(p, shape, stream);
  else
    run_shape<W, kNorm, kPaired, 2>(p, shape, stream);
}

// Whether the product's columns are the heads of q, k and v as the rotation has them, in halves.
bool rotates_whole_heads(const Linear &p, const Rope &r, const KvAppend &a) {
  const int64_t dim = r.head_dim, q = r.q_heads * dim, kv = r.kv_heads * dim;
  const char *out = static_cast<const char *>(p.out);
  return !r.interleaved && r.rotary_dim == dim && dim % 16 == 0 && !r.q_norm && !r.k_norm && r.act == p.act &&
         a.pool.type == p.act && a.pool.kv_heads == r.kv_heads && a.pool.head_dim == dim && p.N == q + 2 * kv && r.q == out &&
         r.k == out + q * 2 && a.k == r.k && a.v == out + (q + kv) * 2 && r.ld_q == p.ld_out && r.ld_k == p.ld_out &&
         a.ld_k == p.ld_out && a.ld_v == p.ld_out;
}

} // namespace

bool fused_linear_applies(const Linear &p, const LinearFusion &f) {
  if (p.M < 1 || p.M > kSkinnyMaxRows || !fits_tensor_cores(p) || p.out_type != p.act)
    return false;
  if (f.norm && (p.act != DType::bf16 || reinterpret_cast<uintptr_t>(f.norm) % 16 != 0))
    return false;
  if (int(f.add) + int(f.gated) + int(f.rope != nullptr) > 1 || (f.gated && p.N % 2 != 0))
    return false;
  return !f.rope || rotates_whole_heads(p, *f.rope, *f.append);
}

void fused_linear(const Linear &p, const LinearFusion &f, cudaStream_t stream) {
  LinearShape shape = choose_linear_shape(p.M, p.N, p.K);
  MmaParams params = mma_params(p);
  params.add = f.add;
  params.norm = f.norm, params.eps = f.eps, params.norm_offset = f.norm_offset;
  if (f.gated)
    params.apart = params.N / 2, params.kind = f.kind;
  if (const Rope *r = f.rope) {
    params.apart = r->head_dim / 2;
    params.positions = r->positions, params.inv_freq = r->inv_freq, params.attention_factor = r->attention_factor;
    params.q_heads = r->q_heads, params.rotated_heads = r->q_heads + r->kv_heads;
    params.pool = f.append->pool.base, params.page_stride = f.append->pool.page_stride_bytes / 2;
    params.page_size = f.append->pool.page_size, params.slots = f.append->slot_mapping;
    if (params.apart % (shape.row_tiles * 8) != 0) // a tile lies in one head
      shape.row_tiles = 1, shape.stages = 4;
  }
  const bool paired = f.gated || f.rope;
  if (p.act == DType::f16)
    return paired ? run<__half, false, true>(params, shape, stream) : run_mma(params, p.act, shape, stream);
  if (!f.norm)
    return paired ? run<__nv_bfloat16, false, true>(params, shape, stream) : run_mma(params, p.act, shape, stream);
  paired ? run<__nv_bfloat16, true, true>(params, shape, stream) : run<__nv_bfloat16, true, false>(params, shape, stream);
}

} // namespace llmrt::cuda
