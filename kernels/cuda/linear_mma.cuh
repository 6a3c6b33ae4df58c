// Products of few rows: the weight is streamed once and everything else hides behind that stream. This is the kernel and its
// launch; linear.cu runs it as it is, linear_fused.cu with what comes before and after a product.
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
#pragma once

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/linear_shape.h"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/rope.h"
#include "kernels/cuda/rotation.cuh"

#include <cooperative_groups.h>

#include <utility>

namespace llmrt::cuda {

constexpr int kBlockK = 64; // k of a stage: one line of 128 bytes a row

// Copies 16 bytes to shared memory, zeros where !valid. Weights are read once and give way in L2 first; inputs stay in L1.
__device__ __forceinline__ void copy_weight(uint32_t to, const void *from, bool valid) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
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

// Eight elements times their norm weights, rounded; the squares of the eight as they were are added to `square`.
template <typename W> __device__ __forceinline__ uint4 weighted(const uint4 &raw, const Eight<float> &weights, float offset, float &square) {
  const W *x = reinterpret_cast<const W *>(&raw);
  uint4 result;
  W *y = reinterpret_cast<W *>(&result);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float v = to_float(x[i]);
    square += v * v;
    y[i] = from_float<W>(v * (weights.v[i] + offset));
  }
  return result;
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
  bool add; // to what `out` holds, which is of the weight's type
  // Where kNorm.
  const float *norm; // [K]
  float eps, norm_offset;
  // Where kPaired: weight rows n and n + apart are a pair, in groups of 2 * apart rows. A gate and what it gates, or, where
  // there are positions, the two of a rotation, in heads of 2 * apart rows: those of q, k and v.
  int apart;
  Activation kind;
  const int32_t *positions; // [M]
  const float *inv_freq;    // [apart]
  float attention_factor;
  int q_heads, rotated_heads, page_size; // q heads are rotated, and so are k heads behind them
  void *pool;
  int64_t page_stride; // elements
  const int64_t *slots; // [M]
};

// kRowTiles · 16 weight rows and kTiles · 8 input rows at most; kStages lines in flight a warp and row.
// kNorm: the input counts as normalised. Its rows are multiplied by the norm's weights on their way to the tensor cores; the
// sum of squares is taken on the same way, and divides what comes out.
// kPaired: half the rows of a tile are the first of pairs, the other half their seconds.
// The smallest blocks must not take so many registers that fewer of them fit than their shared memory allows.
template <typename W, int kRowTiles, int kTiles, int kStages, bool kNorm, bool kPaired>
__global__ void __launch_bounds__(256, kRowTiles == 1 && kTiles == 1 ? 3 : 1) mma_kernel(MmaParams p) {
  constexpr int kRows = 16 * kRowTiles, kResults = kPaired ? kRows / 2 : kRows;
  extern __shared__ __align__(128) char raw[];
  let_next_start();
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, q = lane % 4;
  const int M = p.M, K = p.K, lines = kRows + M;
  const int results = kPaired ? p.N / 2 : p.N; // of a row
  const uint32_t ring = shared_address(raw) + warp * kStages * lines * 128;
  float *parts = reinterpret_cast<float *>(raw + static_cast<size_t>(warps) * kStages * lines * 128);
  // [warps][M][kRows + 1], then the block's sums [M][kRows + 1]; the last column is for squares

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
  // The chunk comes in by XOR, not by a sum: of sums with a uniform part ptxas 13.0 makes asynchronous copies that the device
  // takes for no instruction.
  const uint32_t copy_chunk = (copy_k ^ (copy_line & 1) << 2) * 16;
  auto copy_to = [&](int line) { return (ring + (line + copy_line) * 128) ^ copy_chunk; };
  // What to add to the index of a result for its weight row: the seconds of the pairs in groups before it.
  auto skipped = [&](int tile) { return kPaired ? tile * kResults / p.apart * p.apart : 0; };
  const int last_row = kPaired && p.apart == results ? results - 1 : p.N - 1; // of a first
  auto copy_weights = [&](int tile, int skip, int block, int stage) {
    const int k = block * kBlockK + copy_k * 8;
    const bool valid = k < K;
    const char *from = weight + (valid ? k : 0) * 2;
    const uint32_t to = copy_to(stage * lines);
    const int n = tile * kResults + skip + copy_line;
#pragma unroll
    for (int i = 0; i < kRows / 4; ++i) {
      int line = min(n + i * 4 % kResults, last_row);
      if (i * 4 >= kResults)
        line += p.apart;
      copy_weight(to + i * 512, from + static_cast<uint64_t>(static_cast<uint32_t>(line)) * row_bytes, valid);
    }
  };
  auto copy_inputs = [&](int block, int stage) {
    const int k = block * kBlockK + copy_k * 8;
    const bool valid = k < K;
    const char *from = input + (valid ? k : 0) * 2;
    const uint32_t to = copy_to(stage * lines + kRows);
#pragma unroll
    for (int i = 0; i < kTiles * 2; ++i)
      if (copy_line + i * 4 < M)
        copy_input(to + i * 512, from + (copy_line + i * 4) * input_bytes, valid);
  };

  // The norm's weights of this lane's elements in a block of k: they are fetched as soon as those before are used.
  Eight<float> norm[2] = {};
  auto load_norm = [&](int block) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (const int k = block * kBlockK + (q + h * 4) * 8; k < K)
        norm[h].load(p.norm + k);
  };

  int next = 0, next_block = first, next_tile = first_tile, next_skip = skipped(first_tile);
  auto advance = [&]() {
    ++next;
    next_block += step;
    if (next_block >= k_blocks) {
      next_block = first, next_tile += tile_step;
      next_skip = skipped(next_tile);
    }
  };
#pragma unroll
  for (int s = 0; s < kStages; ++s)
    if (next < total) {
      copy_weights(next_tile, next_skip, next_block, s);
      advance();
    }
  // What result r of row m needs besides its sums: it is fetched while the sums are taken.
  struct Beside {
    float bias = 0, bias_second = 0;
    float cosine = 0, sine = 0; // of the rotation
    W *page = nullptr;          // where in the pages the result goes as well, if it does
    W held{};                   // what `out` holds
  };
  // What no kernel before this one writes.
  auto look_early = [&](Beside &b, int tile, int skip, int m, int r) {
    b = {};
    const int n = tile * kResults + r;
    if (m >= M || n >= results)
      return;
    if (p.bias) {
      b.bias = p.bias[n + skip];
      if constexpr (kPaired)
        b.bias_second = p.bias[n + skip + p.apart];
    }
    if constexpr (kPaired) {
      if (!p.positions)
        return;
      const int head = n / p.apart, at = n % p.apart;
      if (head < p.rotated_heads)
        rotation(p.positions[m], p.inv_freq[at], p.attention_factor, b.cosine, b.sine);
      const int64_t slot = head >= p.q_heads ? p.slots[m] : -1;
      if (slot >= 0) // keys and then values: [2][kv_heads][page_size][2 * apart]
        b.page = static_cast<W *>(p.pool) + slot / p.page_size * p.page_stride +
                 ((head - p.q_heads) * static_cast<int64_t>(p.page_size) + slot % p.page_size) * 2 * p.apart + at;
    }
  };
  auto look_late = [&](Beside &b, int tile, int m, int r) {
    if constexpr (!kPaired)
      if (const int n = tile * kResults + r; p.add && m < M && n < results)
        b.held = static_cast<const W *>(p.out)[m * p.ld_out + n];
  };
  // This thread's first result, the only one unless there are many rows.
  const int own = split * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x), own_m = own / kResults, own_r = own % kResults;
  Beside beside;
  look_early(beside, first_tile, skipped(first_tile), own_m, own_r);
  if (kNorm && each > 0)
    load_norm(first);
  wait_for_previous();
  next = 0, next_block = first, next_tile = first_tile, next_skip = skipped(first_tile);
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
    const int skip = skipped(tile);
    if (tile != first_tile)
      look_early(beside, tile, skip, own_m, own_r);
    look_late(beside, tile, own_m, own_r);
    float acc[kRowTiles][kTiles][4] = {}, square[kTiles] = {};
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
          if constexpr (kNorm)
            x[t] = weighted<W>(x[t], norm[h], p.norm_offset, square[t]);
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
      if constexpr (kNorm)
        load_norm(j + 1 < each ? first + (j + 1) * step : first);
      __syncwarp();
      if (next < total) {
        copy_weights(next_tile, next_skip, next_block, stage);
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
    if constexpr (kNorm) {
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        square[t] += __shfl_xor_sync(0xffffffffu, square[t], 1);
        square[t] += __shfl_xor_sync(0xffffffffu, square[t], 2);
        if (q == 0 && t * 8 + row < M)
          mine[(t * 8 + row) * (kRows + 1) + kRows] = square[t];
      }
    }
    __syncthreads();
    auto store = [&](int m, int n, float value) {
      const int64_t at = m * p.ld_out + n;
      if (p.out_type == DType::f32)
        static_cast<float *>(p.out)[at] = value;
      else if (p.out_type == DType::f16)
        static_cast<__half *>(p.out)[at] = from_float<__half>(value);
      else
        static_cast<__nv_bfloat16 *>(p.out)[at] = from_float<__nv_bfloat16>(value);
    };
    // Result r of row m, from its sums. Products are rounded before what follows, as they are without it.
    auto finish = [&](int m, int r, auto &&sum_at) {
      const int n = tile * kResults + r;
      if (n >= results)
        return;
      const float scale = kNorm ? rsqrtf(sum_at(m, kRows) / static_cast<float>(K) + p.eps) : 1.0f;
      const float product = sum_at(m, r) * scale + beside.bias;
      if constexpr (kPaired) {
        const float a = to_float(from_float<W>(product));
        const float b = to_float(from_float<W>(sum_at(m, r + kResults) * scale + beside.bias_second));
        if (!p.positions)
          return store(m, n, activate(p.kind, a) * b);
        const bool rotates = n / p.apart < p.rotated_heads;
        const W low = from_float<W>(rotates ? a * beside.cosine - b * beside.sine : a);
        const W high = from_float<W>(rotates ? b * beside.cosine + a * beside.sine : b);
        W *to = static_cast<W *>(p.out) + m * p.ld_out + n + skip;
        to[0] = low, to[p.apart] = high;
        if (beside.page)
          beside.page[0] = low, beside.page[p.apart] = high;
      } else {
        store(m, n, p.add ? to_float(beside.held) + to_float(from_float<W>(product)) : product);
      }
    };
    auto finish_all = [&](int begin, int count, auto &&sum_at) {
      for (int i = begin; i < M * kResults; i += count) {
        const int m = i / kResults, r = i % kResults;
        if (i != own) {
          look_early(beside, tile, skip, m, r);
          look_late(beside, tile, m, r);
        }
        finish(m, r, sum_at);
      }
    };
    auto block_sum_at = [&](int m, int line) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < 8; ++w)
        if (w < warps)
          sum += parts[(w * M + m) * (kRows + 1) + line];
      return sum;
    };
    if (p.splits == 1) {
      finish_all(own, blockDim.x, block_sum_at);
    } else {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
      float *sums = parts + warps * M * (kRows + 1);
      for (int i = threadIdx.x; i < M * (kRows + 1); i += blockDim.x)
        if (kNorm || i % (kRows + 1) != kRows)
          sums[i] = block_sum_at(i / (kRows + 1), i % (kRows + 1));
      auto cluster = cooperative_groups::this_cluster();
      cluster.sync();
      finish_all(own, p.splits * blockDim.x, [&](int m, int line) {
        float sum = 0;
        for (int s = 0; s < p.splits; ++s)
          sum += cluster.map_shared_rank(sums, s)[m * (kRows + 1) + line];
        return sum;
      });
      cluster.sync(); // the sums may be overwritten, and the block may end
#endif
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}

inline size_t shared_bytes(const LinearShape &s, int64_t M) {
  const size_t rows = static_cast<size_t>(s.row_tiles) * 16, warps = static_cast<size_t>(s.warps), m = static_cast<size_t>(M);
  return warps * s.stages * (rows + m) * 128 + (warps + 1) * m * (rows + 1) * 4;
}

template <typename W, int kRowTiles, int kTiles, int kStages, bool kNorm, bool kPaired>
void launch_mma(MmaParams params, const LinearShape &shape, cudaStream_t stream) {
  params.tiles = static_cast<int>(ceil_div(params.N, 16 * kRowTiles));
  params.splits = shape.splits;
  const size_t bytes = shared_bytes(shape, params.M);
  auto kernel = mma_kernel<W, kRowTiles, kTiles, kStages, kNorm, kPaired>;
  allow_shared_memory<mma_kernel<W, kRowTiles, kTiles, kStages, kNorm, kPaired>>();
  // As many blocks as fit at once, with as many tiles as there are for each. Fewer would not lie evenly: a kernel's first blocks
  // crowd where those of the kernel in front end first.
  const DeviceLimits &device = device_limits();
  int64_t fit = static_cast<int64_t>(device.shared_per_sm / (bytes + 1024));
  fit = (fit < 1 ? 1 : fit > 2048 / (shape.warps * 32) ? 2048 / (shape.warps * 32) : fit) * device.sms / shape.splits;
  const int64_t groups = params.tiles < fit ? params.tiles : fit;
  launch_cluster(kernel, dim3(static_cast<unsigned>(groups * shape.splits)), dim3(static_cast<unsigned>(shape.warps * 32)),
                 bytes, static_cast<unsigned>(shape.splits), stream, params);
}

// The kernel with neither norm nor pairs, of any shape (linear.cu). M up to kMostRows, `type` of weights and input.
constexpr int64_t kMostRows = 32;
void run_mma(const MmaParams &params, DType type, const LinearShape &shape, cudaStream_t stream);

inline MmaParams mma_params(const Linear &p) {
  MmaParams params = {};
  params.out = p.out, params.ld_out = p.ld_out, params.input = p.input, params.ld_input = p.ld_input;
  params.weight = p.weight, params.bias = p.bias, params.out_type = p.out_type;
  params.M = static_cast<int>(p.M), params.N = static_cast<int>(p.N), params.K = static_cast<int>(p.K);
  return params;
}

inline bool fits_tensor_cores(const Linear &p) {
  return p.act == p.weight_type && p.weight_type != DType::f32 && p.K % 8 == 0 && p.N < 1 << 30 && p.K < 1 << 30 &&
         reinterpret_cast<uintptr_t>(p.weight) % 16 == 0 && aligned16<__half>(p.input, p.ld_input);
}

} // namespace llmrt::cuda
