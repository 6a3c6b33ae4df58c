// Rotary embedding with the optional norm of each head in front, and the append of keys and values to their pages.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/kernels.h"

#include <utility>

namespace llmrt::cuda {

namespace {

constexpr int kHeadThreads = 128;

// One warp a head: norm, then rotation.
template <typename T>
__global__ void rope_kernel(T *q, int64_t ld_q, T *k, int64_t ld_k, const int32_t *positions, const float *inv_freq,
                            const float *q_norm, const float *k_norm, float attention_factor, float eps, int q_heads,
                            int kv_heads, int head_dim, int rotary_dim, bool interleaved) {
  extern __shared__ float heads[]; // [warps][head_dim]
  let_next_start();
  wait_for_previous();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int head = blockIdx.x * (kHeadThreads / 32) + warp;
  if (head >= q_heads + kv_heads)
    return;
  const bool is_q = head < q_heads;
  T *row = is_q ? q + blockIdx.y * ld_q + static_cast<int64_t>(head) * head_dim
                : k + blockIdx.y * ld_k + static_cast<int64_t>(head - q_heads) * head_dim;
  const float *norm = is_q ? q_norm : k_norm;
  float *x = heads + warp * head_dim;

  float square = 0;
  for (int i = lane; i < head_dim; i += 32) {
    x[i] = to_float(row[i]);
    square += x[i] * x[i];
  }
  if (norm) {
    const float scale = rsqrtf(warp_sum(square) / static_cast<float>(head_dim) + eps);
    for (int i = lane; i < head_dim; i += 32)
      x[i] *= scale * norm[i];
  }
  __syncwarp();

  const double position = positions[blockIdx.y];
  const int half = rotary_dim / 2;
  for (int i = lane; i < half; i += 32) {
    // The product is exact in double; reduced to one turn it keeps float's full precision at any position.
    const double angle = position * static_cast<double>(inv_freq[i]);
    const float reduced = static_cast<float>(angle - rint(angle * 0.15915494309189535) * 6.283185307179586);
    float s, c;
    sincosf(reduced, &s, &c);
    s *= attention_factor, c *= attention_factor;
    const int a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + half;
    const float xa = x[a], xb = x[b];
    row[a] = from_float<T>(xa * c - xb * s);
    row[b] = from_float<T>(xb * c + xa * s);
  }
  if (norm)
    for (int i = rotary_dim + lane; i < head_dim; i += 32)
      row[i] = from_float<T>(x[i]);
}

template <typename T, typename P>
__global__ void kv_append_kernel(P *pool, int64_t page_stride, int kv_heads, int page_size, int head_dim, const T *k,
                                 int64_t ld_k, const T *v, int64_t ld_v, const int64_t *slots) {
  let_next_start();
  wait_for_previous();
  const int64_t slot = slots[blockIdx.x];
  if (slot < 0)
    return;
  const int64_t page = slot / page_size, at = slot % page_size;
  P *page_k = pool + page * page_stride;
  P *page_v = page_k + static_cast<int64_t>(kv_heads) * page_size * head_dim;
  for (int i = threadIdx.x; i < kv_heads * head_dim; i += blockDim.x) {
    const int head = i / head_dim, e = i % head_dim;
    const int64_t to = (static_cast<int64_t>(head) * page_size + at) * head_dim + e;
    page_k[to] = from_float<P>(to_float(k[blockIdx.x * ld_k + i]));
    page_v[to] = from_float<P>(to_float(v[blockIdx.x * ld_v + i]));
  }
}

} // namespace

void rope(const Rope &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  with_type(p.act, [&](auto type) {
    using E = decltype(type);
    const int warps = kHeadThreads / 32;
    launch(rope_kernel<E>,
           dim3(static_cast<unsigned>(ceil_div(p.q_heads + p.kv_heads, warps)), static_cast<unsigned>(p.T)),
           dim3(kHeadThreads), static_cast<size_t>(warps * p.head_dim) * 4, stream, static_cast<E *>(p.q), p.ld_q,
           static_cast<E *>(p.k), p.ld_k, p.positions, p.inv_freq, p.q_norm, p.k_norm, p.attention_factor, p.eps,
           p.q_heads, p.kv_heads, p.head_dim, p.rotary_dim, p.interleaved);
  });
}

void kv_append(const KvAppend &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  with_type(p.act, [&](auto act) {
    with_type(p.pool.type, [&](auto pool) {
      using A = decltype(act);
      using P = decltype(pool);
      launch(kv_append_kernel<A, P>, dim3(static_cast<unsigned>(p.T)), dim3(256), 0, stream,
             static_cast<P *>(p.pool.base), p.pool.page_stride_bytes / static_cast<int64_t>(sizeof(P)),
             p.pool.kv_heads, p.pool.page_size, p.pool.head_dim, static_cast<const A *>(p.k), p.ld_k,
             static_cast<const A *>(p.v), p.ld_v, p.slot_mapping);
    });
  });
}

} // namespace llmrt::cuda
