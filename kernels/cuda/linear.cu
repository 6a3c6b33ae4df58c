// Products of few rows: on tensor cores (linear_mma.cuh) where types and alignments allow, in f32 (linear_f32.cu) of any number,
// element by element otherwise.
#include "kernels/cuda/linear_f32.h"
#include "kernels/cuda/linear_mma.cuh"

namespace llmrt::cuda {

namespace {

// Any types and alignments: a warp a weight row, element by element. Mixed types, and shapes that 16-byte loads do not fit.
template <typename A, typename W, typename Out>
__global__ void plain_kernel(Out *out, int64_t ld_out, const A *input, int64_t ld_input, const W *weight,
                             const float *bias, int M, int64_t N, int64_t K) {
  let_next_start();
  wait_for_previous();
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

template <typename W, int kRowTiles, int kTiles>
void run_stages(const MmaParams &p, const LinearShape &shape, cudaStream_t stream) {
  if (shape.stages <= 3)
    launch_mma<W, kRowTiles, kTiles, 3, false, false>(p, shape, stream);
  else
    launch_mma<W, kRowTiles, kTiles, 4, false, false>(p, shape, stream);
}

template <typename W, int kRowTiles> void run_rows(const MmaParams &p, const LinearShape &shape, cudaStream_t stream) {
  if (p.M <= 8)
    run_stages<W, kRowTiles, 1>(p, shape, stream);
  else if (p.M <= 16)
    run_stages<W, kRowTiles, 2>(p, shape, stream);
  else
    run_stages<W, kRowTiles, 4>(p, shape, stream);
}

template <typename W> void run_type(const MmaParams &p, const LinearShape &shape, cudaStream_t stream) {
  if (shape.row_tiles == 1)
    run_rows<W, 1>(p, shape, stream);
  else if (shape.row_tiles == 2)
    run_rows<W, 2>(p, shape, stream);
  else
    run_rows<W, 4>(p, shape, stream);
}

} // namespace

void run_mma(const MmaParams &params, DType type, const LinearShape &shape, cudaStream_t stream) {
  if (type == DType::bf16)
    run_type<__nv_bfloat16>(params, shape, stream);
  else
    run_type<__half>(params, shape, stream);
}

// From the sweeps of bench_cuda_kernels on an H200. One block that fills a multiprocessor reads as fast as memory gives, whatever
// its neighbours do; of many input rows one more stage would take the place of their cache. It is too much where K is short, and
// where few multiprocessors would have a second tile while the others end: then small blocks, of which all fit at once.
LinearShape choose_linear_shape(int64_t M, int64_t N, int64_t K) {
  const DeviceLimits &device = device_limits();
  const int64_t sms = device.sms, tiles = ceil_div(N, 32);
  const bool two_rounds = 2 * tiles > 3 * sms, second_tiles = tiles > sms;
  LinearShape shape = {2, 8, M <= 8 ? 4 : 3, 1};
  if (M > 16)
    shape = N >= sms * 128 ? LinearShape{4, 4, 3, 1} : LinearShape{2, 4, 4, 1};
  else if ((N <= sms * 16 && (K < 8192 || M > 2)) || (M <= 2 && K < 8192 && !two_rounds))
    shape = {1, 8, 4, 1};
  else if (M <= 4 && second_tiles && !two_rounds && device.major >= 9)
    shape = {2, 4, 4, 2};
  else if (K < 2048)
    shape = M <= 2 ? LinearShape{2, 4, 4, 1} : LinearShape{2, 8, 3, 1};
  while (shape.warps > 1 && shared_bytes(shape, M) > device.shared_per_block)
    shape.warps /= 2;
  return shape;
}

void skinny_linear(const Linear &p, const LinearShape &shape, cudaStream_t stream) {
  if (p.M <= 0)
    return;
  if (fits_tensor_cores(p))
    return run_mma(mma_params(p), p.weight_type, shape, stream);
  with_type(p.out_type, [&](auto out) {
    with_type(p.act, [&](auto act) {
      with_type(p.weight_type, [&](auto weight) {
        using A = decltype(act);
        using W = decltype(weight);
        using Out = decltype(out);
        launch(plain_kernel<A, W, Out>, dim3(static_cast<unsigned>(ceil_div(p.N, 8))), dim3(256), 0, stream,
               static_cast<Out *>(p.out), p.ld_out, static_cast<const A *>(p.input), p.ld_input,
               static_cast<const W *>(p.weight), p.bias, static_cast<int>(p.M), p.N, p.K);
      });
    });
  });
}

void skinny_linear(const Linear &p, cudaStream_t stream) {
  if (p.M > 0 && f32_linear_applies(p))
    return f32_linear(p, stream);
  for (int64_t m = 0; m < p.M; m += kMostRows) {
    Linear part = p;
    part.M = p.M - m < kMostRows ? p.M - m : kMostRows;
    part.input = static_cast<const char *>(p.input) + m * p.ld_input * static_cast<int64_t>(dtype_bytes(p.act));
    part.out = static_cast<char *>(p.out) + m * p.ld_out * static_cast<int64_t>(dtype_bytes(p.out_type));
    skinny_linear(part, choose_linear_shape(part.M, p.N, p.K), stream);
  }
}

} // namespace llmrt::cuda
