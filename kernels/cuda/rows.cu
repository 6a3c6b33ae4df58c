// Kernels that stream rows: embedding, norms, sums, gated activation, row selection. All are bound by bytes; at decode,
// by latency.
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rank_sum.h"
#include "kernels/cuda/rows.h"

#include <utility>

namespace llmrt::cuda {

namespace {

// Threads for a row of H elements, eight a thread where they are aligned: enough to load a row at once.
int row_threads(int64_t H) {
  int64_t threads = ceil_div(ceil_div(H, 8), 32) * 32;
  return static_cast<int>(threads < 32 ? 32 : threads > 1024 ? 1024 : threads);
}

// Walks a row of H elements, eight at a time where kWide says that rows are aligned, one by one otherwise.
template <bool kWide, typename F> __device__ __forceinline__ void for_row(int64_t H, F &&f) {
  constexpr int step = kWide ? 8 : 1;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * step; i < H; i += static_cast<int64_t>(blockDim.x) * step)
    f(i);
}

template <typename A, typename W>
__global__ void embedding_kernel(A *out, int64_t ld_out, const W *table, const int32_t *ids, int64_t H, int64_t begin,
                                 int64_t count, float scale) {
  let_next_start();
  wait_for_previous();
  const int64_t row = int64_t(ids[blockIdx.x]) - begin;
  const bool here = row >= 0 && row < count;
  A *to = out + blockIdx.x * ld_out;
  for (int64_t i = threadIdx.x; i < H; i += blockDim.x)
    to[i] = from_float<A>(here ? to_float(table[row * H + i]) * scale : 0.0f);
}

// One block a row; the row is read twice, the second time from the cache.
template <typename T, bool kAdd, bool kWide>
__global__ void norm_kernel(T *out, int64_t ld_out, T *residual, int64_t ld_residual, const T *input, int64_t ld_input,
                            const float *weight, int64_t H, float eps, float weight_offset) {
  __shared__ float scratch[33];
  extern __shared__ float sums[]; // [H]: the row in f32
  let_next_start();
  wait_for_previous();
  const T *in = input + blockIdx.x * ld_input;
  T *res = kAdd ? residual + blockIdx.x * ld_residual : nullptr;
  float square = 0;
  for_row<kWide>(H, [&](int64_t i) {
    if constexpr (kWide) {
      Eight<T> x;
      x.load(in + i);
      if constexpr (kAdd) {
        Eight<T> r;
        r.load(res + i);
#pragma unroll
        for (int e = 0; e < 8; ++e)
          x.v[e] += r.v[e];
        x.store(res + i);
      }
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        sums[i + e] = x.v[e];
        square += x.v[e] * x.v[e];
      }
    } else {
      float x = to_float(in[i]);
      if constexpr (kAdd) {
        x += to_float(res[i]);
        res[i] = from_float<T>(x);
      }
      sums[i] = x;
      square += x * x;
    }
  });
  const float scale = rsqrtf(block_sum(square, scratch) / static_cast<float>(H) + eps);
  T *to = out + blockIdx.x * ld_out;
  for_row<kWide>(H, [&](int64_t i) {
    if constexpr (kWide) {
      Eight<T> y;
#pragma unroll
      for (int e = 0; e < 8; ++e)
        y.v[e] = sums[i + e] * scale * (weight[i + e] + weight_offset);
      y.store(to + i);
    } else {
      to[i] = from_float<T>(sums[i] * scale * (weight[i] + weight_offset));
    }
  });
}

// One block a row of at most kEach · 8 elements a thread, aligned: the row stays in registers, and the norm's weight is on
// its way before the previous kernel has ended.
template <typename T, bool kAdd, int kEach>
__global__ void __launch_bounds__(1024) wide_norm_kernel(T *out, int64_t ld_out, T *residual, int64_t ld_residual, const T *input, int64_t ld_input,
                                 const float *weight, int64_t H, float eps, float weight_offset) {
  __shared__ float scratch[33];
  let_next_start();
  const int step = static_cast<int>(blockDim.x) * 8, begin = static_cast<int>(threadIdx.x) * 8, n = static_cast<int>(H);
  Eight<float> w[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if (begin + j * step < n)
      w[j].load(weight + begin + j * step);
  wait_for_previous();
  const T *in = input + blockIdx.x * ld_input;
  Eight<T> x[kEach];
  float square = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = begin + j * step;
    if (i >= n)
      break;
    x[j].load(in + i);
    if constexpr (kAdd) {
      Eight<T> r;
      r.load(residual + blockIdx.x * ld_residual + i);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        x[j].v[e] += r.v[e];
      x[j].store(residual + blockIdx.x * ld_residual + i);
    }
#pragma unroll
    for (int e = 0; e < 8; ++e)
      square += x[j].v[e] * x[j].v[e];
  }
  const float scale = rsqrtf(block_sum(square, scratch) / static_cast<float>(H) + eps);
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = begin + j * step;
    if (i >= n)
      break;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      x[j].v[e] *= scale * (w[j].v[e] + weight_offset);
    x[j].store(out + blockIdx.x * ld_out + i);
  }
}

template <bool kAdd>
void norm(void *out, int64_t ld_out, void *residual, int64_t ld_residual, const void *input, int64_t ld_input,
          const void *weight, int64_t T, int64_t H, float eps, float offset, DType act, cudaStream_t stream) {
  if (T <= 0)
    return;
  with_type(act, [&](auto type) {
    using E = decltype(type);
    const bool wide = H % 8 == 0 && aligned16<E>(out, ld_out) && aligned16<E>(input, ld_input) &&
                      (!kAdd || aligned16<E>(residual, ld_residual));
    const bool registers = wide && H <= 16384 && reinterpret_cast<uintptr_t>(weight) % 16 == 0;
    auto kernel = registers ? (H <= 8192 ? wide_norm_kernel<E, kAdd, 1> : wide_norm_kernel<E, kAdd, 2>)
                  : wide    ? norm_kernel<E, kAdd, true>
                            : norm_kernel<E, kAdd, false>;
    const size_t shared = registers ? 0 : static_cast<size_t>(H) * 4;
    if (!registers && wide)
      allow_shared_memory<norm_kernel<E, kAdd, true>>();
    else if (!registers)
      allow_shared_memory<norm_kernel<E, kAdd, false>>();
    launch(kernel, dim3(static_cast<unsigned>(T)), dim3(row_threads(H)), shared, stream, static_cast<E *>(out), ld_out,
           static_cast<E *>(residual), ld_residual, static_cast<const E *>(input), ld_input,
           static_cast<const float *>(weight), H, eps, offset);
  });
}

template <typename T>
__global__ void add_kernel(T *residual, int64_t ld_residual, const T *input, int64_t ld_input, int64_t H) {
  let_next_start();
  wait_for_previous();
  T *to = residual + blockIdx.x * ld_residual;
  const T *from = input + blockIdx.x * ld_input;
  for (int64_t i = threadIdx.x; i < H; i += blockDim.x)
    to[i] = from_float<T>(to_float(to[i]) + to_float(from[i]));
}

template <typename T, Activation kKind, bool kWide>
__global__ void gated_act_kernel(T *out, int64_t ld_out, const T *gate, int64_t ld_gate, const T *up, int64_t ld_up,
                                 int64_t F) {
  let_next_start();
  wait_for_previous();
  constexpr int step = kWide ? 8 : 1;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * step;
  if (i >= F)
    return;
  const T *g = gate + blockIdx.y * ld_gate + i, *u = up + blockIdx.y * ld_up + i;
  T *o = out + blockIdx.y * ld_out + i;
  if constexpr (kWide) {
    Eight<T> a, b;
    a.load(g);
    b.load(u);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      a.v[e] = activate<kKind>(a.v[e]) * b.v[e];
    a.store(o);
  } else {
    *o = from_float<T>(activate<kKind>(to_float(*g)) * to_float(*u));
  }
}

template <typename T, Activation kKind> void run_gated_act(const GatedAct &p, cudaStream_t stream) {
  const bool wide = p.F % 8 == 0 && aligned16<T>(p.out, p.ld_out) && aligned16<T>(p.gate, p.ld_gate) &&
                    aligned16<T>(p.up, p.ld_up);
  auto kernel = wide ? gated_act_kernel<T, kKind, true> : gated_act_kernel<T, kKind, false>;
  const dim3 grid(static_cast<unsigned>(ceil_div(p.F, 256 * (wide ? 8 : 1))), static_cast<unsigned>(p.T));
  launch(kernel, grid, dim3(256), 0, stream, static_cast<T *>(p.out), p.ld_out, static_cast<const T *>(p.gate),
         p.ld_gate, static_cast<const T *>(p.up), p.ld_up, p.F);
}

__global__ void copy_rows_kernel(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t bytes,
                                 const int32_t *rows) {
  let_next_start();
  wait_for_previous();
  const int64_t source = rows ? rows[blockIdx.x] : blockIdx.x;
  const char *f = from + source * from_stride;
  char *t = to + blockIdx.x * to_stride;
  const bool wide = ((reinterpret_cast<uintptr_t>(f) | reinterpret_cast<uintptr_t>(t) | bytes) & 15) == 0;
  const bool words = ((reinterpret_cast<uintptr_t>(f) | reinterpret_cast<uintptr_t>(t) | bytes) & 1) == 0;
  if (wide)
    for (int64_t i = threadIdx.x * 16; i < bytes; i += blockDim.x * 16)
      *reinterpret_cast<uint4 *>(t + i) = *reinterpret_cast<const uint4 *>(f + i);
  else if (words)
    for (int64_t i = threadIdx.x * 2; i < bytes; i += blockDim.x * 2)
      *reinterpret_cast<uint16_t *>(t + i) = *reinterpret_cast<const uint16_t *>(f + i);
  else
    for (int64_t i = threadIdx.x; i < bytes; i += blockDim.x)
      t[i] = f[i];
}

template <typename T> __global__ void add_bias_kernel(T *out, int64_t ld_out, const float *bias, int64_t N) {
  let_next_start();
  wait_for_previous();
  const int64_t n = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n < N)
    out[blockIdx.y * ld_out + n] = from_float<T>(to_float(out[blockIdx.y * ld_out + n]) + bias[n]);
}

struct PeerParts {
  const void *data[kMaxPeers];
  int64_t ld[kMaxPeers];
};

template <typename T>
__global__ void peer_sum_kernel(T *out, int64_t ld, PeerParts parts, int count, int64_t H) {
  let_next_start();
  wait_for_previous();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= H)
    return;
  float sum = 0;
  for (int r = 0; r < count; ++r)
    sum += to_float(static_cast<const T *>(parts.data[r])[blockIdx.y * parts.ld[r] + i]);
  out[blockIdx.y * ld + i] = from_float<T>(sum);
}

} // namespace

void embedding(const Embedding &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  with_type(p.act, [&](auto act) {
    with_type(p.weight, [&](auto weight) {
      using A = decltype(act);
      using W = decltype(weight);
      launch(embedding_kernel<A, W>, dim3(static_cast<unsigned>(p.T)), dim3(256), 0, stream, static_cast<A *>(p.out),
             p.ld_out, static_cast<const W *>(p.table), p.ids, p.H, p.vocab_begin, p.vocab_count, p.scale);
    });
  });
}

void rms_norm(const RmsNorm &p, cudaStream_t stream) {
  norm<false>(p.out, p.ld_out, nullptr, 0, p.input, p.ld_input, p.weight, p.T, p.H, p.eps, p.weight_offset, p.act,
              stream);
}

void add_rms_norm(const AddRmsNorm &p, cudaStream_t stream) {
  norm<true>(p.out, p.ld_out, p.residual, p.ld_residual, p.input, p.ld_input, p.weight, p.T, p.H, p.eps,
             p.weight_offset, p.act, stream);
}

void add(const Add &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  with_type(p.act, [&](auto type) {
    using E = decltype(type);
    launch(add_kernel<E>, dim3(static_cast<unsigned>(p.T)), dim3(256), 0, stream, static_cast<E *>(p.residual),
           p.ld_residual, static_cast<const E *>(p.input), p.ld_input, p.H);
  });
}

void gated_act(const GatedAct &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  with_type(p.act, [&](auto type) {
    using E = decltype(type);
    switch (p.kind) {
    case Activation::silu: run_gated_act<E, Activation::silu>(p, stream); break;
    case Activation::gelu_tanh: run_gated_act<E, Activation::gelu_tanh>(p, stream); break;
    case Activation::gelu: run_gated_act<E, Activation::gelu>(p, stream); break;
    }
  });
}

void select_rows(const SelectRows &p, cudaStream_t stream) {
  if (p.R <= 0)
    return;
  const int64_t size = static_cast<int64_t>(dtype_bytes(p.act));
  launch(copy_rows_kernel, dim3(static_cast<unsigned>(p.R)), dim3(128), 0, stream, static_cast<char *>(p.out),
         p.ld_out * size, static_cast<const char *>(p.input), p.ld_input * size, p.H * size, p.rows);
}

void copy_rows(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t rows, int64_t bytes,
               cudaStream_t stream) {
  if (rows <= 0)
    return;
  launch(copy_rows_kernel, dim3(static_cast<unsigned>(rows)), dim3(256), 0, stream, static_cast<char *>(to), to_stride,
         static_cast<const char *>(from), from_stride, bytes, static_cast<const int32_t *>(nullptr));
}

void add_bias(void *out, int64_t ld_out, const float *bias, int64_t M, int64_t N, DType type, cudaStream_t stream) {
  if (M <= 0)
    return;
  with_type(type, [&](auto t) {
    using E = decltype(t);
    launch(add_bias_kernel<E>, dim3(static_cast<unsigned>(ceil_div(N, 256)), static_cast<unsigned>(M)), dim3(256), 0,
           stream, static_cast<E *>(out), ld_out, bias, N);
  });
}

void peer_sum(const PeerSum &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  PeerParts parts;
  for (int r = 0; r < p.count; ++r)
    parts.data[r] = p.parts[r], parts.ld[r] = p.ld_parts[r];
  with_type(p.act, [&](auto type) {
    using E = decltype(type);
    launch(peer_sum_kernel<E>, dim3(static_cast<unsigned>(ceil_div(p.H, 256)), static_cast<unsigned>(p.T)), dim3(256),
           0, stream, static_cast<E *>(p.data), p.ld, parts, p.count, p.H);
  });
}

} // namespace llmrt::cuda
