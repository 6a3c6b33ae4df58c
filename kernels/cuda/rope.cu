// Rotary embedding with the optional norm of each head in front, and the append of keys and values to their pages.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rope.h"
#include "kernels/cuda/rotation.cuh"

#include <type_traits>
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

  const int32_t position = positions[blockIdx.y];
  const int half = rotary_dim / 2;
  for (int i = lane; i < half; i += 32) {
    float s, c;
    rotation(position, inv_freq[i], attention_factor, c, s);
    const int a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + half;
    const float xa = x[a], xb = x[b];
    row[a] = from_float<T>(xa * c - xb * s);
    row[b] = from_float<T>(xb * c + xa * s);
  }
  if (norm)
    for (int i = rotary_dim + lane; i < head_dim; i += 32)
      row[i] = from_float<T>(x[i]);
}

// What rope_append() launches with.
template <typename T, typename P> struct RopeAppendParams {
  T *q, *k;
  const T *v;
  int64_t ld_q, ld_k, ld_v;
  const int32_t *positions;
  const float *inv_freq, *q_norm, *k_norm;
  float attention_factor, eps;
  int q_heads, kv_heads, head_dim, rotary_dim, heads; // heads: of a block
  bool interleaved;
  P *pool;
  int64_t page_stride;
  int page_size;
  const int64_t *slots;
};

// The cosines and sines of a token's position, times the attention factor, into shared memory.
__device__ __forceinline__ void rotations(float *cosines, float *sines, int half, int32_t position, const float *inv_freq,
                                          float attention_factor) {
  for (int i = threadIdx.x; i < half; i += blockDim.x)
    rotation(position, inv_freq[i], attention_factor, cosines[i], sines[i]);
}

// rope_kernel and kv_append_kernel in one: query and key heads are rotated in place, key and value heads go to the pages. A
// block takes some heads of one token, one a warp at a time, and shares the token's angles.
template <typename T, typename P>
__global__ void __launch_bounds__(kHeadThreads) rope_append_kernel(RopeAppendParams<T, P> p) {
  extern __shared__ float shared[]; // cosines and sines, then [warps][head_dim]
  let_next_start();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = p.rotary_dim / 2;
  float *cosines = shared, *sines = shared + half, *x = shared + p.rotary_dim + warp * p.head_dim;
  const int64_t slot = p.slots[blockIdx.y];
  rotations(cosines, sines, half, p.positions[blockIdx.y], p.inv_freq, p.attention_factor);
  __syncthreads();
  wait_for_previous();
  const int64_t page = slot >= 0 ? slot / p.page_size : 0, at = slot >= 0 ? slot % p.page_size : 0;
  P *keys = p.pool + page * p.page_stride, *values = keys + static_cast<int64_t>(p.kv_heads) * p.page_size * p.head_dim;

  const int first = blockIdx.x * p.heads, last = min(first + p.heads, p.q_heads + 2 * p.kv_heads);
  for (int head = first + warp; head < last; head += kHeadThreads / 32) {
    const bool is_q = head < p.q_heads, is_k = !is_q && head < p.q_heads + p.kv_heads;
    const int kv = head - p.q_heads - (is_k ? 0 : p.kv_heads);
    const int64_t to = (static_cast<int64_t>(kv) * p.page_size + at) * p.head_dim;
    if (!is_q && !is_k) {
      const T *from = p.v + blockIdx.y * p.ld_v + static_cast<int64_t>(kv) * p.head_dim;
      if (slot >= 0)
        for (int i = lane; i < p.head_dim; i += 32)
          values[to + i] = from_float<P>(to_float(from[i]));
      continue;
    }
    T *row = is_q ? p.q + blockIdx.y * p.ld_q + static_cast<int64_t>(head) * p.head_dim
                  : p.k + blockIdx.y * p.ld_k + static_cast<int64_t>(kv) * p.head_dim;
    const float *norm = is_q ? p.q_norm : p.k_norm;
    float square = 0;
    for (int i = lane; i < p.head_dim; i += 32) {
      x[i] = to_float(row[i]);
      square += x[i] * x[i];
    }
    if (norm) {
      const float scale = rsqrtf(warp_sum(square) / static_cast<float>(p.head_dim) + p.eps);
      for (int i = lane; i < p.head_dim; i += 32)
        x[i] *= scale * norm[i];
    }
    __syncwarp();
    auto put = [&](int i, float value) {
      row[i] = from_float<T>(value);
      if (is_k && slot >= 0)
        keys[to + i] = from_float<P>(to_float(row[i]));
    };
    for (int i = lane; i < half; i += 32) {
      const int a = p.interleaved ? 2 * i : i, b = p.interleaved ? 2 * i + 1 : i + half;
      put(a, x[a] * cosines[i] - x[b] * sines[i]);
      put(b, x[b] * cosines[i] + x[a] * sines[i]);
    }
    for (int i = p.rotary_dim + lane; i < p.head_dim; i += 32)
      put(i, x[i]);
    __syncwarp();
  }
}

// The same where whole heads are rotated in halves and all rows allow 16-byte accesses: a thread takes eight elements of
// each half of a head, kLanes threads a head.
template <typename T, int kLanes> __global__ void wide_rope_append_kernel(RopeAppendParams<T, T> p) {
  constexpr int kHalf = kLanes * 8;
  __shared__ __align__(16) float cosines[kHalf], sines[kHalf];
  let_next_start();
  const int token = blockIdx.y, i = threadIdx.x % kLanes * 8, slice = threadIdx.x / kLanes;
  const int head = blockIdx.x * p.heads + slice, kv = head < p.q_heads + p.kv_heads ? head - p.q_heads : head - p.q_heads - p.kv_heads;
  const bool is_q = head < p.q_heads, is_k = !is_q && head < p.q_heads + p.kv_heads;
  const bool here = slice < p.heads && head < p.q_heads + 2 * p.kv_heads;
  const float *norm = is_q ? p.q_norm : is_k ? p.k_norm : nullptr;
  const int64_t slot = p.slots[token];
  rotations(cosines, sines, kHalf, p.positions[token], p.inv_freq, p.attention_factor);
  __syncthreads();
  wait_for_previous();
  T *row = is_q   ? p.q + token * p.ld_q + static_cast<int64_t>(head) * 2 * kHalf
           : is_k ? p.k + token * p.ld_k + static_cast<int64_t>(kv) * 2 * kHalf
                  : const_cast<T *>(p.v) + token * p.ld_v + static_cast<int64_t>(kv) * 2 * kHalf;
  Eight<T> a = {}, b = {};
  if (here) {
    a.load(row + i);
    b.load(row + kHalf + i);
  }
  if (p.q_norm || p.k_norm) {
    float square = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      square += a.v[e] * a.v[e] + b.v[e] * b.v[e];
#pragma unroll
    for (int offset = kLanes / 2; offset; offset /= 2)
      square += __shfl_xor_sync(0xffffffffu, square, offset);
    if (norm && here) {
      const float scale = rsqrtf(square / static_cast<float>(2 * kHalf) + p.eps);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        a.v[e] *= scale * norm[i + e], b.v[e] *= scale * norm[kHalf + i + e];
    }
  }
  if (!here)
    return;
  if (is_q || is_k) {
    Eight<float> c, s;
    c.load(cosines + i), s.load(sines + i);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float x = a.v[e], y = b.v[e];
      a.v[e] = x * c.v[e] - y * s.v[e];
      b.v[e] = y * c.v[e] + x * s.v[e];
    }
    a.store(row + i);
    b.store(row + kHalf + i);
  }
  if (is_q || slot < 0)
    return;
  const int64_t page = slot / p.page_size, line = slot % p.page_size;
  T *to = p.pool + page * p.page_stride + (static_cast<int64_t>(is_k ? kv : p.kv_heads + kv) * p.page_size + line) * 2 * kHalf;
  a.store(to + i);
  b.store(to + kHalf + i);
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

void rope_append(const Rope &p, const KvAppend &append, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  with_type(p.act, [&](auto act) {
    with_type(append.pool.type, [&](auto pool) {
      using A = decltype(act);
      using P = decltype(pool);
      const int heads = p.q_heads + 2 * p.kv_heads;
      RopeAppendParams<A, P> params = {
          static_cast<A *>(p.q), static_cast<A *>(p.k), static_cast<const A *>(append.v), p.ld_q, p.ld_k, append.ld_v,
          p.positions, p.inv_freq, p.q_norm, p.k_norm, p.attention_factor, p.eps, p.q_heads, p.kv_heads, p.head_dim,
          p.rotary_dim, heads, p.interleaved, static_cast<P *>(append.pool.base),
          append.pool.page_stride_bytes / static_cast<int64_t>(sizeof(P)), append.pool.page_size, append.slot_mapping};
      if constexpr (std::is_same_v<A, P> && sizeof(A) == 2) {
        const bool wide = !p.interleaved && p.rotary_dim == p.head_dim && aligned16<A>(p.q, p.ld_q) && aligned16<A>(p.k, p.ld_k) &&
                          aligned16<A>(append.v, append.ld_v) && aligned16<char>(append.pool.base, append.pool.page_stride_bytes);
        auto run = [&](auto lanes) {
          constexpr int kLanes = decltype(lanes)::value;
          // Few tokens: more blocks. Many: all heads of a token share its angles.
          const int at_once = (p.T <= 64 ? 128 : heads * kLanes < 512 ? heads * kLanes : 512) / kLanes;
          params.heads = at_once;
          keep_shared_memory<wide_rope_append_kernel<A, kLanes>>();
          launch(wide_rope_append_kernel<A, kLanes>, dim3(static_cast<unsigned>(ceil_div(heads, at_once)), static_cast<unsigned>(p.T)),
                 dim3(static_cast<unsigned>(ceil_div(at_once * kLanes, 32) * 32)), 0, stream, params);
        };
        if (wide && p.head_dim == 128)
          return run(std::integral_constant<int, 8>());
        if (wide && p.head_dim == 64)
          return run(std::integral_constant<int, 4>());
        if (wide && p.head_dim == 256)
          return run(std::integral_constant<int, 16>());
      }
      const int warps = kHeadThreads / 32;
      params.heads = p.T <= 128 ? warps : heads;
      launch(rope_append_kernel<A, P>, dim3(static_cast<unsigned>(ceil_div(heads, params.heads)), static_cast<unsigned>(p.T)),
             dim3(kHeadThreads), static_cast<size_t>(p.rotary_dim + warps * p.head_dim) * 4, stream, params);
    });
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
