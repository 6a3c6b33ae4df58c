// Products in f32, of any number of rows: one order of summation for all of them, so that a row's result does
// not depend on how many others there are. f32 on GPUs is there to be exact; the library's products take
// another order for each size.
//
// A warp computes kRows × kCols elements, its lanes along K: each sums what it reads, four neighbours every
// 128, and then the warp sums across lanes. That is the order of one element whatever the size of the tile.
#include "kernels/cuda/linear_f32.h"

#include "kernels/cuda/common.cuh"

namespace llmrt::cuda {

namespace {

constexpr int kWarps = 16;

// The sums across the warp of the first kCount values of v, in warp_sum()'s order. While there are several,
// either half of the lanes goes on with half of them. Afterwards v begins with the sums of values `first` and
// on: kCount / 32, at least one.
template <int kCount, int kOffset = 16, int kAll>
__device__ __forceinline__ void sum_across(float (&v)[kAll], int lane, int &first) {
  if constexpr (kOffset > 0) {
    constexpr int kHalf = kCount / 2;
    if constexpr (kHalf > 0) {
      const bool upper = lane & kOffset;
      first += upper ? kHalf : 0;
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
        const float low = v[i], high = v[kHalf + i];
        v[i] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, kOffset);
      }
    } else {
      v[0] += __shfl_xor_sync(0xffffffffu, v[0], kOffset);
    }
    sum_across<(kHalf > 0 ? kHalf : 1), kOffset / 2>(v, lane, first);
  }
}

// Grid: tiles of rows (x), of columns (y). Of a block's warps, row_warps stand along the rows. kRows and
// kCols are powers of two.
template <int kRows, int kCols>
__global__ void __launch_bounds__(kWarps * 32)
    f32_kernel(float *out, int64_t ld_out, const float *input, int64_t ld_input, const float *weight,
               const float *bias, int64_t M, int64_t N, int64_t K, int row_warps) {
  let_next_start();
  wait_for_previous();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, col_warps = kWarps / row_warps;
  const int64_t m0 = (static_cast<int64_t>(blockIdx.x) * row_warps + warp % row_warps) * kRows;
  const int64_t n0 = (static_cast<int64_t>(blockIdx.y) * col_warps + warp / row_warps) * kCols;
  if (m0 >= M || n0 >= N)
    return;
  // Rows and columns behind the last are read as the last, and not written.
  float sums[kRows * kCols] = {};
  const float4 *tile_rows = reinterpret_cast<const float4 *>(input + m0 * ld_input);
  const float4 *tile_cols = reinterpret_cast<const float4 *>(weight + n0 * K);
  const int row_step = static_cast<int>(ld_input / 4), col_step = static_cast<int>(K / 4);
  const int last_row = static_cast<int>(min(M - 1 - m0, int64_t{kRows - 1})),
            last_col = static_cast<int>(min(N - 1 - n0, int64_t{kCols - 1}));
#pragma unroll 1
  for (int k = lane; k < col_step; k += 32) {
    float4 w[kCols];
#pragma unroll
    for (int c = 0; c < kCols; ++c)
      w[c] = tile_cols[min(c, last_col) * col_step + k];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 x = tile_rows[min(r, last_row) * row_step + k];
#pragma unroll
      for (int c = 0; c < kCols; ++c) {
        float &sum = sums[r * kCols + c];
        sum = fmaf(x.x, w[c].x, sum);
        sum = fmaf(x.y, w[c].y, sum);
        sum = fmaf(x.z, w[c].z, sum);
        sum = fmaf(x.w, w[c].w, sum);
      }
    }
  }
  // A lane has kEach of the values in the end; where there are fewer than lanes, kTwins lanes have the same one.
  constexpr int kCount = kRows * kCols, kEach = kCount > 32 ? kCount / 32 : 1;
  constexpr int kTwins = kCount < 32 ? 32 / kCount : 1;
  int first = 0;
  sum_across<kCount>(sums, lane, first);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int64_t m = m0 + (first + i) / kCols, n = n0 + (first + i) % kCols;
    if (m < M && n < N && lane % kTwins == 0)
      out[m * ld_out + n] = sums[i] + (bias ? bias[n] : 0.0f);
  }
}

template <int kRows, int kCols> void run(const Linear &p, cudaStream_t stream) {
  const int row_warps = p.M <= kRows ? 1 : 4;
  launch(f32_kernel<kRows, kCols>,
         dim3(static_cast<unsigned>(ceil_div(p.M, row_warps * kRows)),
              static_cast<unsigned>(ceil_div(p.N, kWarps / row_warps * kCols))),
         dim3(kWarps * 32), 0, stream, static_cast<float *>(p.out), p.ld_out,
         static_cast<const float *>(p.input), p.ld_input, static_cast<const float *>(p.weight), p.bias, p.M,
         p.N, p.K, row_warps);
}

template <int kRows> void run_rows(const Linear &p, cudaStream_t stream) {
  // A small product is cut small, so that every multiprocessor has some of it.
  if (p.N <= static_cast<int64_t>(device_limits().sms) * kWarps * 2 && p.M <= kRows)
    run<kRows, 2>(p, stream);
  else
    run<kRows, 8>(p, stream);
}

} // namespace

bool f32_linear_applies(const Linear &p) {
  return p.act == DType::f32 && p.weight_type == DType::f32 && p.out_type == DType::f32 && p.K % 4 == 0 &&
         p.ld_input % 4 == 0 && reinterpret_cast<uintptr_t>(p.input) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(p.weight) % 16 == 0;
}

void f32_linear(const Linear &p, cudaStream_t stream) {
  if (p.M == 1)
    run_rows<1>(p, stream);
  else if (p.M == 2)
    run_rows<2>(p, stream);
  else if (p.M <= 4)
    run_rows<4>(p, stream);
  else
    run_rows<8>(p, stream);
}

} // namespace llmrt::cuda
