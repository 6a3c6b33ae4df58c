// Products of few rows: the weight is streamed once and everything else hides behind that stream.
//
// For two-byte weights the tensor cores do the arithmetic with the weight as the M side (16 rows of it a warp) and the
// batch as the N side (8 rows a tile). A sum over k may be taken in any order, so the k slots of mma.m16n8k16 are
// assigned such that each lane feeds them with 16 contiguous bytes of its row: lane (row = lane / 4, q = lane % 4) holds
// k = base + 8q … + 7 of its row for both operands, which is two mma steps. Eight warps of a block share 16 rows and take
// turns along K, so 512 contiguous bytes of a row are in flight at once; partial sums meet in shared memory in fixed
// order. The first weights are requested before the previous kernel has ended.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/kernels.h"

#include <utility>

namespace llmrt::cuda {

namespace {

constexpr int kWarps = 8;      // along K
constexpr int kRows = 16;      // weight rows of a block
constexpr int kStep = 32;      // k of one step of a warp

template <typename W> __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
template <>
__device__ __forceinline__ void mma<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ __forceinline__ void mma<__half>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Streaming load: weights are read once and must not push activations out of the caches.
__device__ __forceinline__ uint4 load_weight(const void *p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

// kTiles · 8 rows of input; kUnroll steps of weights in flight a warp.
template <typename W, typename Out, int kTiles, int kUnroll>
__global__ void __launch_bounds__(kWarps * 32)
    mma_kernel(Out *out, int64_t ld_out, const W *input, int64_t ld_input, const W *weight, const float *bias, int M,
               int64_t N, int64_t K) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, q = lane % 4;
  const int64_t n0 = static_cast<int64_t>(blockIdx.x) * kRows;
  const W *w0 = weight + min(n0 + row, N - 1) * K, *w1 = weight + min(n0 + row + 8, N - 1) * K;
  const uint4 zero = make_uint4(0, 0, 0, 0);

  float acc[kTiles][4] = {};
  uint4 a0[kUnroll], a1[kUnroll];
  auto fetch = [&](int64_t base) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t k = base + u * (kWarps * kStep) + q * 8;
      a0[u] = k < K ? load_weight(w0 + k) : zero;
      a1[u] = k < K ? load_weight(w1 + k) : zero;
    }
  };
  int64_t base = warp * kStep;
  fetch(base);
  wait_for_previous();
  let_next_start();

  while (base < K) {
    uint4 c0[kUnroll], c1[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      c0[u] = a0[u], c1[u] = a1[u];
    const int64_t here = base;
    base += kUnroll * kWarps * kStep;
    if (base < K)
      fetch(base);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t k = here + u * (kWarps * kStep) + q * 8;
      const uint32_t first[4] = {c0[u].x, c1[u].x, c0[u].y, c1[u].y}, second[4] = {c0[u].z, c1[u].z, c0[u].w, c1[u].w};
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        const int m = t * 8 + row;
        const uint4 x = k < K && m < M ? __ldg(reinterpret_cast<const uint4 *>(input + m * ld_input + k)) : zero;
        const uint32_t b0[2] = {x.x, x.y}, b1[2] = {x.z, x.w};
        mma<W>(acc[t], first, b0);
        mma<W>(acc[t], second, b1);
      }
    }
  }

  __shared__ float parts[kWarps][kTiles * 8][kRows + 1];
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    parts[warp][t * 8 + q * 2][row] = acc[t][0];
    parts[warp][t * 8 + q * 2 + 1][row] = acc[t][1];
    parts[warp][t * 8 + q * 2][row + 8] = acc[t][2];
    parts[warp][t * 8 + q * 2 + 1][row + 8] = acc[t][3];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTiles * 8 * kRows; i += kWarps * 32) {
    const int m = i / kRows, r = i % kRows;
    const int64_t n = n0 + r;
    if (m >= M || n >= N)
      continue;
    float sum = bias ? bias[n] : 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w)
      sum += parts[w][m][r];
    out[m * ld_out + n] = from_float<Out>(sum);
  }
}

// Any types and alignments: a warp a weight row, element by element. f32 models, and shapes that 16-byte loads do not fit.
template <typename A, typename W, typename Out>
__global__ void plain_kernel(Out *out, int64_t ld_out, const A *input, int64_t ld_input, const W *weight,
                             const float *bias, int M, int64_t N, int64_t K) {
  wait_for_previous();
  let_next_start();
  const int64_t n = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (n >= N)
    return;
  constexpr int kBlock = 8;
  for (int m0 = 0; m0 < M; m0 += kBlock) {
    float acc[kBlock] = {};
    for (int64_t k = lane; k < K; k += 32) {
      const float w = to_float(weight[n * K + k]);
#pragma unroll
      for (int i = 0; i < kBlock; ++i)
        if (m0 + i < M)
          acc[i] += w * to_float(input[(m0 + i) * ld_input + k]);
    }
#pragma unroll
    for (int i = 0; i < kBlock; ++i) {
      const float sum = warp_sum(acc[i]);
      if (lane == 0 && m0 + i < M)
        out[(m0 + i) * ld_out + n] = from_float<Out>(sum + (bias ? bias[n] : 0.0f));
    }
  }
}

template <typename W, typename Out, int kTiles, int kUnroll> void launch_mma(const Linear &p, cudaStream_t stream) {
  launch(mma_kernel<W, Out, kTiles, kUnroll>, dim3(static_cast<unsigned>(ceil_div(p.N, kRows))), dim3(kWarps * 32), 0,
         stream, static_cast<Out *>(p.out), p.ld_out, static_cast<const W *>(p.input), p.ld_input,
         static_cast<const W *>(p.weight), p.bias, static_cast<int>(p.M), p.N, p.K);
}

template <typename W, typename Out> void run_mma(const Linear &p, cudaStream_t stream) {
  if (p.M <= 8)
    launch_mma<W, Out, 1, 4>(p, stream);
  else if (p.M <= 16)
    launch_mma<W, Out, 2, 3>(p, stream);
  else
    launch_mma<W, Out, 4, 2>(p, stream);
}

} // namespace

void skinny_linear(const Linear &whole, cudaStream_t stream) {
  if (whole.M <= 0)
    return;
  Linear p = whole;
  p.M = whole.M < kSkinnyMaxRows ? whole.M : kSkinnyMaxRows;
  if (whole.M > p.M) { // more rows than the kernel takes at once
    Linear rest = whole;
    rest.M -= p.M;
    rest.input = static_cast<const char *>(whole.input) + p.M * whole.ld_input * dtype_bytes(whole.act);
    rest.out = static_cast<char *>(whole.out) + p.M * whole.ld_out * dtype_bytes(whole.out_type);
    skinny_linear(p, stream);
    return skinny_linear(rest, stream);
  }
  const bool tensor_cores = p.act == p.weight_type && p.weight_type != DType::f32 && p.K % 8 == 0 &&
                            reinterpret_cast<uintptr_t>(p.weight) % 16 == 0 && aligned16<__half>(p.input, p.ld_input);
  with_type(p.out_type, [&](auto out) {
    using Out = decltype(out);
    if (tensor_cores && p.weight_type == DType::bf16)
      return run_mma<__nv_bfloat16, Out>(p, stream);
    if (tensor_cores)
      return run_mma<__half, Out>(p, stream);
    with_type(p.act, [&](auto act) {
      with_type(p.weight_type, [&](auto weight) {
        using A = decltype(act);
        using W = decltype(weight);
        launch(plain_kernel<A, W, Out>, dim3(static_cast<unsigned>(ceil_div(p.N, 8))), dim3(256), 0, stream,
               static_cast<Out *>(p.out), p.ld_out, static_cast<const A *>(p.input), p.ld_input,
               static_cast<const W *>(p.weight), p.bias, static_cast<int>(p.M), p.N, p.K);
      });
    });
  });
}

} // namespace llmrt::cuda
