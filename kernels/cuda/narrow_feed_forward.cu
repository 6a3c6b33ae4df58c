// The feed-forward half of a narrow layer in one launch (narrow.h): norm, gate, activation, down product.
//
// Each cluster has a share of the F columns: its blocks multiply the gates and what they gate, send each other what comes of
// that, and multiply it by the cluster's columns of the down weight, each block some rows of them.
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/narrow.cuh"

namespace llmrt::cuda {

namespace {

using T = __nv_bfloat16;

struct FeedForwardParams {
  NarrowResidual in;
  const float *norm, *gate_up_bias, *down_bias;
  const T *gate_up, *down;
  float *parts;
  float eps, norm_offset;
  Activation kind;
  int M, H, F, cluster, columns; // of F, of a cluster
  struct {
    int gate_up, down, norm, bias, x, sums, squares, h, barriers;
  } at; // in shared memory
};

// Barriers: gates and norm are there, down is there, the other blocks' columns are there.
enum { kGateUp, kDown, kColumns, kBarriers };

// With the attention half's 128 registers, blocks of both fit on a multiprocessor.
__global__ void __maxnreg__(96) feed_forward_kernel(const __grid_constant__ FeedForwardParams p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) char raw[];
  let_next_start();
  const uint32_t shared = shared_address(raw);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int M = p.M, H = p.H, rank = static_cast<int>(cluster_rank()), cluster = blockIdx.x / p.cluster;
  const NarrowShare pairs(p.columns, p.cluster, rank, 8), rows(H, p.cluster, rank, 1);
  const int first_column = cluster * p.columns;
  const auto barrier = [&](int i) { return shared + p.at.barriers + i * 8; };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kBarriers; ++i)
      barrier_init(barrier(i), 1);
    fence_barriers();
    barrier_expect(barrier(kColumns), M * (p.columns - pairs.count) * static_cast<int>(sizeof(T)));
  }
  __syncthreads();
  cluster_arrive();
  // Gates, then what they gate.
  const auto weight_row = [&](int i) { return (i < pairs.count ? 0 : p.F - pairs.count) + first_column + pairs.first + i; };
  if (warp == 0) {
    hold_rows(shared + p.at.gate_up, held_pitch(H), H * 2, 2 * pairs.count, barrier(kGateUp), H * 4,
              [&](int i) { return p.gate_up + static_cast<int64_t>(weight_row(i)) * H; });
    if (lane == 0)
      copy_bulk(shared + p.at.norm, p.norm, H * 4, barrier(kGateUp));
  } else if (warp == 1) {
    hold_rows(shared + p.at.down, held_pitch(p.columns), p.columns * 2, rows.count, barrier(kDown), 0,
              [&](int i) { return p.down + static_cast<int64_t>(rows.first + i) * p.F + first_column; });
  }
  float *bias = reinterpret_cast<float *>(raw + p.at.bias), *down_bias = bias + 2 * pairs.count;
  hold_bias(bias, p.gate_up_bias, 2 * pairs.count, weight_row);
  hold_bias(down_bias, cluster == 0 ? p.down_bias : nullptr, rows.count, [&](int i) { return rows.first + i; });
  const NarrowLanes lanes(M);
  const int pieces = pairs.count / 8, pitch = held_pitch(p.columns);
  NarrowMessages messages(pieces ? pieces : 1);
  const uint32_t there = of_block(shared, messages.block < p.cluster ? messages.block : 0);
  barrier_wait(barrier(kGateUp), 0);
  ResidualLoad residual(p.in, M, H, reinterpret_cast<const float *>(raw + p.at.norm), p.norm_offset);
  cluster_wait();
  wait_for_previous();

  float square[kNarrowMaxRows] = {};
  residual.run(raw + p.at.x, blockIdx.x == 0, square);
  __syncthreads();
  const NarrowSums gates(raw + p.at.sums, 2 * pairs.count, H);
  multiply_held<T>(gates, shared + p.at.x, shared + p.at.gate_up, H, 2 * pairs.count, M);
  float *squares = reinterpret_cast<float *>(raw + p.at.squares);
  store_squares(square, M, squares);
  __syncthreads();
  for (int r = lanes.first; r < pairs.count; r += lanes.step) {
    const float scale = norm_scale(squares, lanes.m, static_cast<float>(H), p.eps);
    const float gate = to_float(from_float<T>(gates.at(M, lanes.m, r) * scale + bias[r]));
    const float up = to_float(from_float<T>(gates.at(M, lanes.m, pairs.count + r) * scale + bias[pairs.count + r]));
    *reinterpret_cast<T *>(raw + p.at.h + lanes.m * pitch + (pairs.first + r) * 2) = from_float<T>(activate(p.kind, gate) * up);
  }
  __syncthreads();
  if (messages.block < p.cluster && messages.block != rank && pieces)
    for (; messages.m < M; messages.advance(pieces)) {
      const int at = p.at.h + messages.m * pitch + (pairs.first + messages.piece * 8) * 2;
      send(there + at, *reinterpret_cast<const float4 *>(raw + at), there + p.at.barriers + kColumns * 8);
    }
  barrier_wait(barrier(kDown), 0);
  wait_for_blocks(barrier(kColumns), 0);
  const NarrowSums down(raw + p.at.sums, rows.count, p.columns);
  multiply_held<T>(down, shared + p.at.h, shared + p.at.down, p.columns, rows.count, M);
  __syncthreads();
  store_parts(down, lanes, p.parts + static_cast<int64_t>(cluster) * M * H, down_bias, rows, M, H);
#endif
}

// Places everything in shared memory; how much that is.
int place(FeedForwardParams &p) {
  const NarrowShare pairs(p.columns, p.cluster, 0, 8), rows(p.H, p.cluster, 0, 1); // the largest
  NarrowRoom room;
  p.at.gate_up = room.take(2 * pairs.count * held_pitch(p.H));
  p.at.down = room.take(rows.count * held_pitch(p.columns));
  p.at.norm = room.take(p.H * 4);
  p.at.bias = room.take((2 * pairs.count + rows.count) * 4);
  p.at.x = room.take(p.M * held_pitch(p.H));
  const int warps = narrow_warps(p.H);
  p.at.sums = room.take(std::max(narrow_sums_bytes(warps, 2 * pairs.count, p.M), narrow_sums_bytes(warps, rows.count, p.M)));
  p.at.squares = room.take(warps * kNarrowMaxRows * 4);
  p.at.h = room.take(p.M * held_pitch(p.columns));
  p.at.barriers = room.take(kBarriers * 8);
  return room.bytes();
}

FeedForwardParams params_of(const NarrowFeedForward &p, const NarrowShape &shape, int64_t M) {
  FeedForwardParams params = {};
  params.in = p.in;
  params.norm = p.norm, params.gate_up_bias = p.gate_up_bias, params.down_bias = p.down_bias;
  params.gate_up = static_cast<const T *>(p.gate_up), params.down = static_cast<const T *>(p.down);
  params.parts = p.parts, params.eps = p.eps, params.norm_offset = p.norm_offset, params.kind = p.kind;
  params.M = static_cast<int>(M), params.H = static_cast<int>(p.H), params.F = static_cast<int>(p.F);
  params.cluster = shape.cluster, params.columns = static_cast<int>(p.F / shape.clusters);
  return params;
}

} // namespace

NarrowShape narrow_shape(const NarrowFeedForward &p) {
  NarrowShape shape = {kNarrowCluster, 0, 0};
  for (int clusters : {4, 3, 5, 6, 7, 8, 2})
    if (!shape.clusters && p.F % (32 * clusters) == 0) {
      FeedForwardParams params = params_of(p, {kNarrowCluster, clusters, 0}, kNarrowMaxRows);
      if (place(params) <= narrow_room())
        shape.clusters = clusters;
    }
  return shape;
}

bool narrow_feed_forward_applies(const NarrowFeedForward &p) {
  return narrow_device() && narrow_residual_fits(p.in, p.norm, p.H) && p.H % 32 == 0 && reinterpret_cast<uintptr_t>(p.gate_up) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(p.down) % 16 == 0 && narrow_shape(p).clusters > 0;
}

void narrow_feed_forward(const NarrowFeedForward &p, const NarrowShape &shape, cudaStream_t stream) {
  FeedForwardParams params = params_of(p, shape, p.M);
  const int bytes = place(params);
  prepare_narrow<feed_forward_kernel>();
  launch_cluster(feed_forward_kernel, dim3(static_cast<unsigned>(shape.cluster * shape.clusters)),
                 dim3(static_cast<unsigned>(narrow_warps(p.H) * 32)), static_cast<size_t>(bytes), static_cast<unsigned>(shape.cluster), stream,
                 params);
}

} // namespace llmrt::cuda
