// What the launches of narrow.h have in common: weights that a block holds in shared memory from before the kernel in front of it
// has ended, the normalised residual, products of a few rows with held weights.
//
// A block has some rows of each of its two weights, all of their columns. Its warps share the columns of a product, 32 at a time,
// and meet in shared memory (see linear_mma.cuh for how the tensor cores take them).
#pragma once

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/narrow.h"

#include <algorithm>

namespace llmrt::cuda {

// Bytes from one row of `columns` (a multiple of 32) 16-bit elements in shared memory to the next: 64 more than a multiple of
// 128, so that reads of two neighbouring rows meet no bank conflict.
__host__ __device__ constexpr int held_pitch(int64_t columns) {
  return static_cast<int>(columns) * 2 + (columns % 64 == 0 ? 64 : 0);
}

// The warps of a block, at most 12: as few as take the fewest turns for a product of `columns` columns.
inline int narrow_warps(int64_t columns) {
  const int64_t steps = columns / 32, turns = ceil_div(steps, 12);
  const int64_t warps = ceil_div(steps, turns);
  return static_cast<int>(warps < 8 ? 8 : warps);
}

// Room in a block's shared memory, given out piece by piece.
class NarrowRoom {
public:
  int take(int64_t bytes) {
    const int at = end_;
    end_ += static_cast<int>((bytes + 127) / 128 * 128);
    return at;
  }
  int bytes() const { return end_; }

private:
  int end_ = 0;
};

// A share `rank` of `of`: whole units of `total`, as even as that goes.
struct NarrowShare {
  int first, count;
  __host__ __device__ NarrowShare(int total, int of, int rank, int unit) {
    const int each = (total / unit + of - 1) / of * unit;
    first = each * rank < total ? each * rank : total;
    count = total - first < each ? total - first : each;
  }
};

// How the threads of a block share `count` results of each of M rows without dividing by anything: a warp has one row, and every
// so many results of it.
struct NarrowLanes {
  int m, first, step;
  __device__ explicit NarrowLanes(int M) {
    const int warp = threadIdx.x / 32, turns = blockDim.x / 32 / M; // warps of a row
    m = warp % M, step = turns * 32;
    first = warp / M < turns ? warp / M * 32 + static_cast<int>(threadIdx.x % 32) : 1 << 30;
  }
};

// How they share messages of eight columns, `pieces` from each of M rows, to up to sixteen blocks: a thread has a block, and
// every so many messages.
struct NarrowMessages {
  int block, next, m, piece;
  __device__ explicit NarrowMessages(int pieces) : block(threadIdx.x % 16), next(threadIdx.x / 16), m(next / pieces), piece(next % pieces) {}
  __device__ __forceinline__ void advance(int pieces) {
    next += blockDim.x / 16;
    m = next / pieces, piece = next % pieces;
  }
};

// Sums that the warps of a block leave: [warp][row of x][row of the weight].
struct NarrowSums {
  float *parts;
  int line;   // floats from one row of x to the next
  int warps;  // that had columns
  __device__ NarrowSums(char *at, int rows, int columns)
      : parts(reinterpret_cast<float *>(at)), line((rows + 15) / 16 * 16 + 1), warps(min(columns / 32, int(blockDim.x) / 32)) {}
  __device__ __forceinline__ float at(int M, int m, int row) const {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < 12; ++w)
      if (w < warps)
        sum += parts[(w * M + m) * line + row];
    return sum;
  }
};
inline int64_t narrow_sums_bytes(int warps, int64_t rows, int64_t M) { return warps * M * ((rows + 15) / 16 * 16 + 1) * 4; }

inline constexpr int kNarrowCluster = 16; // blocks that work best, on devices that have such clusters

// What both launches want of the device and of what they read and write.
inline bool narrow_device() { return device_limits().major >= 9 && device_limits().most_cluster >= kNarrowCluster; }
// Shared memory that a block may take: half a multiprocessor's, so that the next launch's weights come while this one runs.
inline int64_t narrow_room() { return static_cast<int64_t>(device_limits().shared_per_sm / 2) - 1024; }
inline bool narrow_residual_fits(const NarrowResidual &in, const float *norm, int64_t H) {
  return aligned16<__nv_bfloat16>(in.rows, in.ld) && aligned16<__nv_bfloat16>(in.sum, in.ld_sum) && reinterpret_cast<uintptr_t>(norm) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(in.parts) % 16 == 0 && H % 8 == 0 && in.count <= kNarrowMaxParts;
}

// Clusters of more than eight blocks, and all the shared memory that a block can have.
template <auto kKernel> void prepare_narrow() {
  allow_shared_memory<kKernel>();
  keep_shared_memory<kKernel>();
  static std::atomic<uint64_t> done{0};
  once_a_device(done, [] { require(cudaFuncSetAttribute(kKernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "clusters"); });
}

// One warp starts the copies of `count` rows of `bytes` bytes each, row_at(i) in memory; the barrier expects them and `besides`.
template <typename F>
__device__ __forceinline__ void hold_rows(uint32_t to, int pitch, int bytes, int count, uint32_t barrier, int besides, F &&row_at) {
  const int lane = threadIdx.x % 32;
  if (lane == 0)
    barrier_expect(barrier, count * bytes + besides);
  __syncwarp();
  for (int i = lane; i < count; i += 32)
    copy_bulk(to + i * pitch, row_at(i), bytes, barrier);
}

// x[M, columns] · weights[rows, columns]ᵀ, both in shared memory, into sums. The block must meet before those are read.
template <typename T>
__device__ __forceinline__ void multiply_held(const NarrowSums &sums, uint32_t x, uint32_t weights, int columns, int rows, int M) {
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32, row = lane / 4, q = lane % 4;
  const int pitch = held_pitch(columns);
  const uint32_t x_at = x + (row < M ? row : 0) * pitch + q * 16; // any row will do for those past M
  constexpr int kTiles = 3; // at once
  for (int tile = 0; tile * 16 < rows; tile += kTiles) {
    uint32_t low[kTiles], high[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) { // nor does it matter which row stands for those past the last
      low[t] = weights + min((tile + t) * 16 + row, rows - 1) * pitch + q * 16;
      high[t] = weights + min((tile + t) * 16 + row + 8, rows - 1) * pitch + q * 16;
    }
    float even[kTiles][4] = {}, odd[kTiles][4] = {}; // two chains of products
#pragma unroll 2
    for (int k = warp * 64; k < columns * 2; k += warps * 64) { // bytes
      const uint4 b = load_shared(x_at + k);
      uint4 l[kTiles], h[kTiles];
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
        l[t] = load_shared(low[t] + k), h[t] = load_shared(high[t] + k);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        const uint32_t first[4] = {l[t].x, h[t].x, l[t].y, h[t].y}, second[4] = {l[t].z, h[t].z, l[t].w, h[t].w};
        mma<T>(even[t], first, b.x, b.y);
        mma<T>(odd[t], second, b.z, b.w);
      }
    }
    if (warp >= sums.warps)
      continue;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (const int m = q * 2 + i % 2; m < M && (tile + t) * 16 < rows)
          sums.parts[(warp * M + m) * sums.line + (tile + t) * 16 + row + i / 2 * 8] = even[t][i] + odd[t][i];
  }
}

// Eight neighbouring columns of a row of the residual: where they lie, and their sum. All that they are made of is asked for at
// once, four parts at a time.
struct ResidualColumns {
  const __nv_bfloat16 *row;
  const float *parts;
  __device__ __forceinline__ ResidualColumns(const NarrowResidual &in, int H, int m, int column)
      : row(static_cast<const __nv_bfloat16 *>(in.rows) + m * in.ld + column), parts(in.parts + static_cast<int64_t>(m) * H + column) {}

  __device__ __forceinline__ void load(int count, int64_t step, float (&v)[8]) const {
    const uint4 raw = __ldcg(reinterpret_cast<const uint4 *>(row));
    float sum[8] = {};
    const float *next = parts;
    for (int left = count; left > 0; left -= 4) {
      float4 part[4][2] = {};
#pragma unroll
      for (int i = 0; i < 4; ++i, next += step)
        if (i < left) {
          part[i][0] = __ldcg(reinterpret_cast<const float4 *>(next));
          part[i][1] = __ldcg(reinterpret_cast<const float4 *>(next) + 1);
        }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sum[0] += part[i][0].x, sum[1] += part[i][0].y, sum[2] += part[i][0].z, sum[3] += part[i][0].w;
        sum[4] += part[i][1].x, sum[5] += part[i][1].y, sum[6] += part[i][1].z, sum[7] += part[i][1].w;
      }
    }
    const __nv_bfloat16 *e = reinterpret_cast<const __nv_bfloat16 *>(&raw);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      v[i] = to_float(e[i]) + to_float(from_float<__nv_bfloat16>(sum[i]));
  }
};

// The residual times the norm's weights, not yet divided by its norm, into x; one block in all stores the residual too. What can
// be is looked up before the kernel in front has ended.
class ResidualLoad {
public:
  // The norm's weights must be in shared memory.
  __device__ __forceinline__ ResidualLoad(const NarrowResidual &in, int M, int H, const float *norm, float offset)
      : in_(in), M_(M), H_(H), norm_(norm), offset_(offset), pieces_((H + 255) / 256), first_(of(threadIdx.x / 32)),
        columns_(in, H, first_.m, first_.column) {
    look(first_, weights_);
  }
  // Leaves this thread's share of each row's squares in `square`.
  __device__ __forceinline__ void run(char *x, bool stores, float (&square)[kNarrowMaxRows]) {
    take(first_, columns_, weights_, x, stores, square);
    for (int i = threadIdx.x / 32 + blockDim.x / 32; i < M_ * pieces_; i += blockDim.x / 32) {
      const Piece piece = of(i);
      float weights[8];
      look(piece, weights);
      take(piece, ResidualColumns(in_, H_, piece.m, piece.column), weights, x, stores, square);
    }
  }

private:
  struct Piece { // of a row: eight columns a lane
    int m, column;
  };
  __device__ __forceinline__ Piece of(int i) const {
    const int m = i / pieces_;
    return {m, (i - m * pieces_) * 256 + static_cast<int>(threadIdx.x % 32) * 8};
  }
  __device__ __forceinline__ bool has(const Piece &piece) const { return piece.m < M_ && piece.column < H_; }
  __device__ __forceinline__ void look(const Piece &piece, float (&weights)[8]) const {
    if (!has(piece))
      return;
    const float4 low = reinterpret_cast<const float4 *>(norm_ + piece.column)[0], high = reinterpret_cast<const float4 *>(norm_ + piece.column)[1];
    weights[0] = low.x + offset_, weights[1] = low.y + offset_, weights[2] = low.z + offset_, weights[3] = low.w + offset_;
    weights[4] = high.x + offset_, weights[5] = high.y + offset_, weights[6] = high.z + offset_, weights[7] = high.w + offset_;
  }
  __device__ __forceinline__ void take(const Piece &piece, const ResidualColumns &columns, const float (&weights)[8], char *x, bool stores,
                                       float (&square)[kNarrowMaxRows]) const {
    if (!has(piece))
      return;
    float v[8];
    columns.load(in_.count, static_cast<int64_t>(M_) * H_, v);
    Eight<__nv_bfloat16> sum, weighted;
    float squares = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      squares += v[j] * v[j];
      sum.v[j] = v[j], weighted.v[j] = v[j] * weights[j];
    }
    weighted.store(reinterpret_cast<__nv_bfloat16 *>(x + piece.m * held_pitch(H_)) + piece.column);
    if (stores)
      sum.store(static_cast<__nv_bfloat16 *>(in_.sum) + piece.m * in_.ld_sum + piece.column);
#pragma unroll
    for (int r = 0; r < kNarrowMaxRows; ++r)
      square[r] += r == piece.m ? squares : 0;
  }

  const NarrowResidual &in_;
  int M_, H_;
  const float *norm_;
  float offset_;
  int pieces_;
  Piece first_;
  ResidualColumns columns_;
  float weights_[8];
};

// The squares of a warp's threads, of each row, to squares[warp][row].
__device__ __forceinline__ void store_squares(const float (&square)[kNarrowMaxRows], int M, float *squares) {
#pragma unroll
  for (int m = 0; m < kNarrowMaxRows; ++m)
    if (m < M) {
      const float sum = warp_sum(square[m]);
      if (threadIdx.x % 32 == 0)
        squares[threadIdx.x / 32 * kNarrowMaxRows + m] = sum;
    }
}
__device__ __forceinline__ float norm_scale(const float *squares, int m, float columns, float eps) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < 12; ++w)
    if (w < int(blockDim.x) / 32)
      sum += squares[w * kNarrowMaxRows + m];
  return rsqrtf(__fdividef(sum, columns) + eps);
}

// The second product's share of this block, into its cluster's parts: rows share.first … of [M, H].
__device__ __forceinline__ void store_parts(const NarrowSums &sums, const NarrowLanes &lanes, float *to, const float *bias,
                                            const NarrowShare &share, int M, int H) {
  for (int r = lanes.first; r < share.count; r += lanes.step)
    __stcg(to + static_cast<int64_t>(lanes.m) * H + share.first + r, sums.at(M, lanes.m, r) + bias[r]);
}

// Biases of a block's rows to shared memory, zeros where there are none; `row` says which one i is.
template <typename F> __device__ __forceinline__ void hold_bias(float *to, const float *bias, int count, F &&row) {
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    to[i] = bias ? bias[row(i)] : 0;
}

} // namespace llmrt::cuda
