// Products of few rows: the weight is streamed once and everything else hides behind that stream.
//
// The tensor cores do the arithmetic with the weight as the M side (16 rows a tile) and the batch as the N side (8 rows a
// tile). A warp owns a share of K, in blocks of 64, and a ring of shared memory of its own: a stage holds 128 bytes of each
// weight row of the tile and of each input row, copied asynchronously, so that what is in flight does not depend on
// registers and no warp waits for another. The ring runs on over tile boundaries and fills with weights before the previous
// kernel has ended. Partial sums of the warps meet in shared memory in fixed order; where a product has too few rows for
// the device, the blocks of a cluster split K and meet in each other's shared memory.
//
// A sum over k may be taken in any order, so the k slots of mma.m16n8k16 are assigned such that each lane reads 16
// contiguous bytes: lane (row = lane / 4, q = lane % 4) holds k = base + 8q … + 7 of its row for both operands, which is
// two mma steps.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linear_shape.h"

#include <cooperative_groups.h>

#include <utility>

namespace llmrt::cuda {

namespace {

constexpr int kBlockK = 64; // k of a stage: one line of 128 bytes a row
constexpr int64_t kMostRows = 32; // of the input, at once

template <typename W> __device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ __forceinline__ void mma<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void mma<__half>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copies 16 bytes to shared memory, zeros where !valid. Weights are read once and give way in L2 first; inputs stay in L1.
__device__ __forceinline__ void copy_weight(uint32_t to, const void *from, bool valid) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr uint64_t kEvictFirst = 0x12F0000000000000;
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(from),
               "r"(valid ? 16 : 0), "l"(kEvictFirst)
               : "memory");
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
#endif
}
__device__ __forceinline__ void copy_input(uint32_t to, const void *from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
__device__ __forceinline__ uint4 load_shared(uint32_t from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from) : "memory");
  return v;
}

struct MmaParams {
  void *out;
  int64_t ld_out;
  const void *input;
  int64_t ld_input;
  const void *weight;
  const float *bias;
  int M, N, K, tiles, splits;
  DType out_type;
};

// kRowTiles · 16 weight rows and kTiles · 8 input rows at most; kStages lines in flight a warp and row.
template <typename W, int kRowTiles, int kTiles, int kStages>
__global__ void __launch_bounds__(256) mma_kernel(MmaParams p) {
  constexpr int kRows = 16 * kRowTiles;
  extern __shared__ __align__(128) char raw[];
  let_next_start();
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, q = lane % 4;
  const int M = p.M, N = p.N, K = p.K, lines = kRows + M;
  const uint32_t ring = static_cast<uint32_t>(__cvta_generic_to_shared(raw)) + warp * kStages * lines * 128;
  float *parts = reinterpret_cast<float *>(raw + static_cast<size_t>(warps) * kStages * lines * 128);
  // [warps][M][kRows + 1], then the block's sums [M][kRows]

  const int split = p.splits > 1 ? blockIdx.x % p.splits : 0, first_tile = blockIdx.x / p.splits;
  const int tile_step = gridDim.x / p.splits;
  const int k_blocks = (K + kBlockK - 1) / kBlockK, first = split * warps + warp, step = p.splits * warps;
  const int each = first < k_blocks ? (k_blocks - first + step - 1) / step : 0;
  const int my_tiles = (p.tiles - first_tile + tile_step - 1) / tile_step, total = each * my_tiles;

  const int copy_line = lane / 8, copy_k = lane % 8;
  const char *weight = static_cast<const char *>(p.weight), *input = static_cast<const char *>(p.input);
  const uint32_t row_bytes = static_cast<uint32_t>(K) * 2;
  const int64_t input_bytes = p.ld_input * 2;
  // Lines of odd rows have their halves swapped, so that the reads of two rows meet no bank conflict.
  const uint32_t copy_to = copy_line * 128 + (copy_k ^ (copy_line & 1) << 2) * 16;
  auto copy_weights = [&](int tile, int block, int stage) {
    const int k = block * kBlockK + copy_k * 8;
    const bool valid = k < K;
    const char *from = weight + (valid ? k : 0) * 2;
    const uint32_t to = ring + stage * lines * 128 + copy_to;
    const int n = tile * kRows + copy_line;
#pragma unroll
    for (int i = 0; i < kRows / 4; ++i)
      copy_weight(to + i * 512, from + static_cast<uint64_t>(static_cast<uint32_t>(min(n + i * 4, N - 1))) * row_bytes, valid);
  };
  auto copy_inputs = [&](int block, int stage) {
    const int k = block * kBlockK + copy_k * 8;
    const bool valid = k < K;
    const char *from = input + (valid ? k : 0) * 2;
    const uint32_t to = ring + (stage * lines + kRows) * 128 + copy_to;
#pragma unroll
    for (int i = 0; i < kTiles * 2; ++i)
      if (copy_line + i * 4 < M)
        copy_input(to + i * 512, from + (copy_line + i * 4) * input_bytes, valid);
  };

  int next = 0, next_block = first, next_tile = first_tile;
  auto advance = [&]() {
    ++next;
    next_block += step;
    if (next_block >= k_blocks)
      next_block = first, next_tile += tile_step;
  };
#pragma unroll
  for (int s = 0; s < kStages; ++s)
    if (next < total) {
      copy_weights(next_tile, next_block, s);
      advance();
    }
  wait_for_previous();
  next = 0, next_block = first, next_tile = first_tile;
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    if (next < total) {
      copy_inputs(next_block, s);
      advance();
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  // Where this lane reads, in a stage: line `row` (and rows 8 apart), chunks q and q + 4.
  const uint32_t swap = (row & 1) << 2, chunk[2] = {(q ^ swap) * 16, ((q + 4) ^ swap) * 16};
  int stage = 0;
  for (int tile = first_tile; tile < p.tiles; tile += tile_step) {
    float acc[kRowTiles][kTiles][4] = {};
    for (int j = 0; j < each; ++j) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 1) : "memory");
      __syncwarp();
      const uint32_t from = ring + stage * lines * 128 + row * 128;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        uint4 x[kTiles];
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          const int m = t * 8 + row < M ? t * 8 : M - 1 - row; // any line will do for rows past M
          x[t] = load_shared(from + (kRows + m) * 128 + (t * 8 + row < M ? chunk[h] : 0));
        }
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          const uint4 a = load_shared(from + r * 2048 + chunk[h]), b = load_shared(from + r * 2048 + 1024 + chunk[h]);
          const uint32_t low[4] = {a.x, b.x, a.y, b.y}, high[4] = {a.z, b.z, a.w, b.w};
#pragma unroll
          for (int t = 0; t < kTiles; ++t) {
            mma<W>(acc[r][t], low, x[t].x, x[t].y);
            mma<W>(acc[r][t], high, x[t].z, x[t].w);
          }
        }
      }
      __syncwarp();
      if (next < total) {
        copy_weights(next_tile, next_block, stage);
        copy_inputs(next_block, stage);
        advance();
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }

    float *mine = parts + warp * M * (kRows + 1);
    __syncthreads(); // the previous tile's parts have been read
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int m = t * 8 + q * 2 + i % 2;
          if (m < M)
            mine[m * (kRows + 1) + r * 16 + row + i / 2 * 8] = acc[r][t][i];
        }
    __syncthreads();
    auto write = [&](int m, int r, float sum) {
      const int64_t n = static_cast<int64_t>(tile) * kRows + r;
      if (n >= N)
        return;
      sum += p.bias ? p.bias[n] : 0.0f;
      const int64_t at = m * p.ld_out + n;
      if (p.out_type == DType::f32)
        static_cast<float *>(p.out)[at] = sum;
      else if (p.out_type == DType::f16)
        static_cast<__half *>(p.out)[at] = from_float<__half>(sum);
      else
        static_cast<__nv_bfloat16 *>(p.out)[at] = from_float<__nv_bfloat16>(sum);
    };
    auto block_sum_at = [&](int m, int r) {
      float sum = 0;
      for (int w = 0; w < warps; ++w)
        sum += parts[(w * M + m) * (kRows + 1) + r];
      return sum;
    };
    if (p.splits == 1) {
      for (int i = threadIdx.x; i < M * kRows; i += blockDim.x)
        write(i / kRows, i % kRows, block_sum_at(i / kRows, i % kRows));
    } else {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
      float *sums = parts + warps * M * (kRows + 1);
      for (int i = threadIdx.x; i < M * kRows; i += blockDim.x)
        sums[i] = block_sum_at(i / kRows, i % kRows);
      auto cluster = cooperative_groups::this_cluster();
      cluster.sync();
      for (int i = split * blockDim.x + threadIdx.x; i < M * kRows; i += p.splits * blockDim.x) {
        float sum = 0;
        for (int s = 0; s < p.splits; ++s)
          sum += cluster.map_shared_rank(sums, s)[i];
        write(i / kRows, i % kRows, sum);
      }
      cluster.sync(); // the sums may be overwritten, and the block may end
#endif
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}

// Any types and alignments: a warp a weight row, element by element. f32 models, and shapes that 16-byte loads do not fit.
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

size_t shared_bytes(const LinearShape &s, int M) {
  const size_t rows = static_cast<size_t>(s.row_tiles) * 16, warps = static_cast<size_t>(s.warps), m = static_cast<size_t>(M);
  return warps * s.stages * (rows + m) * 128 + warps * m * (rows + 1) * 4 + m * rows * 4;
}

template <typename W, int kRowTiles, int kTiles, int kStages>
void launch_mma(const Linear &p, const LinearShape &shape, cudaStream_t stream) {
  constexpr int kRows = 16 * kRowTiles;
  const int M = static_cast<int>(p.M), tiles = static_cast<int>(ceil_div(p.N, kRows));
  const int splits = shape.splits;
  const size_t bytes = shared_bytes(shape, M);
  const MmaParams params = {p.out,  p.ld_out, p.input,    p.ld_input, p.weight,           p.bias,
                            M,      static_cast<int>(p.N), static_cast<int>(p.K), tiles, splits, p.out_type};
  auto kernel = mma_kernel<W, kRowTiles, kTiles, kStages>;
  allow_shared_memory<mma_kernel<W, kRowTiles, kTiles, kStages>>();
  // As many blocks as fit at once, in even rounds.
  const DeviceLimits &device = device_limits();
  int64_t fit = static_cast<int64_t>(device.shared_per_sm / (bytes + 1024));
  fit = (fit < 1 ? 1 : fit > 2048 / (shape.warps * 32) ? 2048 / (shape.warps * 32) : fit) * device.sms / splits;
  const int64_t rounds = ceil_div(tiles, fit), groups = ceil_div(tiles, rounds);
  launch_cluster(kernel, dim3(static_cast<unsigned>(groups * splits)), dim3(static_cast<unsigned>(shape.warps * 32)), bytes,
                 static_cast<unsigned>(splits), stream, params);
}

template <typename W, int kRowTiles, int kTiles>
void run_stages(const Linear &p, const LinearShape &shape, cudaStream_t stream) {
  if (shape.stages <= 3)
    launch_mma<W, kRowTiles, kTiles, 3>(p, shape, stream);
  else
    launch_mma<W, kRowTiles, kTiles, 4>(p, shape, stream);
}

template <typename W, int kRowTiles> void run_rows(const Linear &p, const LinearShape &shape, cudaStream_t stream) {
  if (p.M <= 8)
    run_stages<W, kRowTiles, 1>(p, shape, stream);
  else if (p.M <= 16)
    run_stages<W, kRowTiles, 2>(p, shape, stream);
  else
    run_stages<W, kRowTiles, 4>(p, shape, stream);
}

template <typename W> void run_mma(const Linear &p, const LinearShape &shape, cudaStream_t stream) {
  if (shape.row_tiles == 1)
    run_rows<W, 1>(p, shape, stream);
  else if (shape.row_tiles == 2)
    run_rows<W, 2>(p, shape, stream);
  else
    run_rows<W, 4>(p, shape, stream);
}

} // namespace

// From the sweep of bench_cuda_kernels on an H200. Blocks of one multiprocessor share its bandwidth, so that a product of
// one round wants many small blocks; clusters pay for one round only.
LinearShape choose_linear_shape(int64_t M, int64_t N, int64_t K) {
  const DeviceLimits &device = device_limits();
  const bool many_rows = N >= static_cast<int64_t>(device.sms) * 128, clusters = device.major >= 9;
  LinearShape shape = {2, 8, 3, 1};
  if (M > 16)
    shape = many_rows ? LinearShape{4, 4, 3, 1} : LinearShape{2, 4, 4, 1};
  else if (M <= 2 && many_rows)
    shape = {2, 4, 4, 1};
  else if (M <= 2)
    shape = K >= 8192 && clusters ? LinearShape{2, 4, 3, 4} : LinearShape{1, 8, 4, 1};
  while (shape.warps > 1 && shared_bytes(shape, static_cast<int>(M)) > device.shared_per_block)
    shape.warps /= 2;
  return shape;
}

void skinny_linear(const Linear &p, const LinearShape &shape, cudaStream_t stream) {
  if (p.M <= 0)
    return;
  const bool tensor_cores = p.act == p.weight_type && p.weight_type != DType::f32 && p.K % 8 == 0 && p.N < 1 << 30 &&
                            p.K < 1 << 30 && reinterpret_cast<uintptr_t>(p.weight) % 16 == 0 &&
                            aligned16<__half>(p.input, p.ld_input);
  if (tensor_cores && p.weight_type == DType::bf16)
    return run_mma<__nv_bfloat16>(p, shape, stream);
  if (tensor_cores)
    return run_mma<__half>(p, shape, stream);
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
  for (int64_t m = 0; m < p.M; m += kMostRows) {
    Linear part = p;
    part.M = p.M - m < kMostRows ? p.M - m : kMostRows;
    part.input = static_cast<const char *>(p.input) + m * p.ld_input * static_cast<int64_t>(dtype_bytes(p.act));
    part.out = static_cast<char *>(p.out) + m * p.ld_out * static_cast<int64_t>(dtype_bytes(p.out_type));
    skinny_linear(part, choose_linear_shape(part.M, p.N, p.K), stream);
  }
}

} // namespace llmrt::cuda
