// Gated products of many rows on Hopper: out = activation(input · gateᵀ) * (input · upᵀ) in one launch.
//
// A block computes tiles of kRows input rows (the M side of the warpgroup products) by kColumns gates and the
// kColumns that they gate (the N side): both sums of an output are in the same thread's registers when the
// tile is done, so that what is written is half of the product, once. One thread has the copy engine fill a
// ring of stages of 64 k each, the first weights before the previous kernel has ended, and goes on to the
// next tile while this one is written; two or three warpgroups multiply.
//
// The two blocks of a cluster take neighbouring columns of the same rows: each fetches half of the rows, for
// both.
//
// Results leave through shared memory, warp by warp, by the copy engine.
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gated_shape.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"

#ifdef LLMRT_HOPPER
#include "kernels/cuda/tensor_map.h"

#include <algorithm>
#endif

namespace llmrt::cuda {

bool gated_linear_applies(const Linear &p) {
#ifdef LLMRT_HOPPER
  const auto aligned = [](const void *data, int64_t ld) {
    return reinterpret_cast<uintptr_t>(data) % 16 == 0 && ld % 8 == 0;
  };
  return device_limits().major == 9 && p.act != DType::f32 && p.act == p.weight_type && p.act == p.out_type &&
         p.N % 16 == 0 && p.M < 1 << 28 && p.N < 1 << 28 && p.K < 1 << 28 && aligned(p.weight, p.K) &&
         aligned(p.input, p.ld_input) && aligned(p.out, p.ld_out);
#else
  (void)p;
  return false;
#endif
}

#ifdef LLMRT_HOPPER

namespace {

constexpr int kBlockK = 64;

struct GatedParams {
  CUtensorMap weight, input, out;
  const float *bias;
  int M, columns; // of the output
  int k_blocks, stages;
  int row_tiles, column_steps, band; // a step is a tile for each block of a cluster
  uint64_t weight_policy, input_policy;
  Activation kind;
};

// The tiles of a block, one after the other. Clusters that run at the same time are given neighbouring tiles:
// `band` tiles of rows, then the next columns of those.
struct Tiles {
  int unit, units, step;
  __device__ Tiles(const GatedParams &p, int cluster)
      : unit(static_cast<int>(blockIdx.x) / cluster), units(p.row_tiles * p.column_steps),
        step(static_cast<int>(gridDim.x) / cluster) {}
  __device__ bool more() const { return unit < units; }
  __device__ void next(const GatedParams &p, int &row_tile, int &column_step) {
    const int band = unit / (p.band * p.column_steps), in_band = unit - band * p.band * p.column_steps;
    const int rows = min(p.band, p.row_tiles - band * p.band);
    row_tile = band * p.band + in_band % rows, column_step = in_band / rows;
    unit += step;
  }
};

// kGroups warpgroups of kBlocks times 64 rows each.
template <typename T, int kGroups, int kBlocks, int kColumns, int kCluster> struct Gated {
  static constexpr int kRows = kGroups * kBlocks * 64, kConsumers = kGroups * 128,
                       kThreads = kConsumers + 128;
  // Registers of a thread: what the producers' warpgroup does not need goes to the others.
  static constexpr int kProducerRegs = kGroups == 2 ? 24 : 32, kConsumerRegs = kGroups == 2 ? 240 : 160;
  static constexpr int kInputBytes = kRows * kBlockK * 2, kWeightBytes = 2 * kColumns * kBlockK * 2;
  static constexpr int kStageBytes = kInputBytes + kWeightBytes;
  static constexpr int kWarpBytes = 16 * kColumns * 2; // results of a warp
  static constexpr int kLinesBytes = kConsumers / 32 * kWarpBytes;
  static constexpr int kFit = (226 * 1024 - 1024 - 256 - kLinesBytes) / kStageBytes,
                       kMostStages = kFit < 8 ? kFit : 8;
  static constexpr int kQuads = kColumns / 8; // of a thread's gates: two columns of two rows each
  static_assert(kColumns % 8 == 0 && kQuads % 4 != 0,
                "columns in whole matrices, rows of them in different banks");
  using Sums =
      float[kBlocks][kColumns]; // of a thread: gates, then what they gate; as warpgroup products leave them

  static size_t bytes(int stages) {
    return 1024 + stages * (kStageBytes + 16) + kLinesBytes;
  } // aligned by hand

  static __device__ __forceinline__ void fetch_weight(const GatedParams &p, int column, int k, uint32_t stage,
                                                      uint32_t full) {
    barrier_expect(full, kStageBytes);
    copy_box(stage + kInputBytes, &p.weight, k * kBlockK, column, 0, full, p.weight_policy);
  }
  static __device__ __forceinline__ void fetch_input(const GatedParams &p, int row, int rank, int k,
                                                     uint32_t stage, uint32_t full) {
    constexpr int kShare = kRows / kCluster;
    if constexpr (kCluster == 1)
      copy_box(stage, &p.input, k * kBlockK, row, full, p.input_policy);
    else
      copy_box_to((1 << kCluster) - 1, stage + rank * (kShare * kBlockK * 2), &p.input, k * kBlockK,
                  row + rank * kShare, full, p.input_policy);
  }

  static __device__ void produce(const GatedParams &p, int rank, uint32_t stages, uint32_t full,
                                 uint32_t empty) {
    int stage = 0, use = 0;
    bool first = true;
    for (Tiles tiles(p, kCluster); tiles.more();) {
      int row_tile, column_step, k = 0;
      tiles.next(p, row_tile, column_step);
      const int row = row_tile * kRows, column = (column_step * kCluster + rank) * kColumns;
      if (first) {
        first = false;
        const int early = min(p.stages, p.k_blocks);
        for (int s = 0; s < early; ++s)
          fetch_weight(p, column, s, stages + s * kStageBytes, full + s * 8);
        wait_for_previous();
        for (; k < early; ++k)
          fetch_input(p, row, rank, k, stages + k * kStageBytes, full + k * 8);
        stage = early == p.stages ? 0 : early, use = early == p.stages;
      }
      for (; k < p.k_blocks; ++k) {
        barrier_wait(empty + stage * 8, use & 1 ^ 1); // of all blocks that the input goes to
        fetch_weight(p, column, k, stages + stage * kStageBytes, full + stage * 8);
        fetch_input(p, row, rank, k, stages + stage * kStageBytes, full + stage * 8);
        if (++stage == p.stages)
          stage = 0, ++use;
      }
    }
  }

  static __device__ __forceinline__ void add_bias(const GatedParams &p, int column, Sums &sums) {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      const int at = column + q * 8 + threadIdx.x % 4 * 2;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (at + i < p.columns) {
          const float gate = p.bias[at + i], up = p.bias[p.columns + at + i];
#pragma unroll
          for (int b = 0; b < kBlocks; ++b) {
            sums[b][q * 4 + i] += gate, sums[b][q * 4 + 2 + i] += gate;
            sums[b][(kQuads + q) * 4 + i] += up, sums[b][(kQuads + q) * 4 + 2 + i] += up;
          }
        }
    }
  }

  // The calling warp's 16 rows of each of its warpgroup's blocks of 64. `lines` is its own.
  template <Activation kKind>
  static __device__ __forceinline__ void write(const GatedParams &p, int row, int column, const Sums &sums,
                                               uint32_t lines) {
    const int lane = threadIdx.x % 32;
    const uint32_t to = lines + lane % 16 * (kColumns * 2) + lane / 16 * 16;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      if (row + b * 64 >= p.M)
        break;
      uint32_t out[kQuads * 2]; // of the first and of the ninth row from the lane's on
#pragma unroll
      for (int i = 0; i < kQuads * 2; ++i)
        out[i] = pack<T>(activate<kKind>(sums[b][i * 2]) * sums[b][kColumns / 2 + i * 2],
                         activate<kKind>(sums[b][i * 2 + 1]) * sums[b][kColumns / 2 + i * 2 + 1]);
      if (lane == 0)
        wait_stores_read();
      __syncwarp();
#pragma unroll
      for (int q = 0; q + 1 < kQuads; q += 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to + q * 16),
                     "r"(out[q * 2]), "r"(out[q * 2 + 1]), "r"(out[q * 2 + 2]), "r"(out[q * 2 + 3])
                     : "memory");
      if constexpr (kQuads % 2 != 0)
        asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(to + (kQuads - 1) * 16),
                     "r"(out[kQuads * 2 - 2]), "r"(out[kQuads * 2 - 1])
                     : "memory");
      fence_async();
      __syncwarp();
      if (lane == 0) {
        store_box(&p.out, column, row + b * 64, lines);
        commit_stores();
      }
    }
  }

  static __device__ void consume(const GatedParams &p, int rank, uint32_t stages, uint32_t lines,
                                 uint32_t full, uint32_t empty) {
    const int group = threadIdx.x / 128, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    lines += warp * kWarpBytes;
    const uint32_t empty_there =
        of_block(empty, lane < kCluster ? lane : 0); // of each block, in a lane of its own
    const auto release = [&](int stage) {
      if (lane < kCluster)
        arrive_at(empty_there + stage * 8);
    };
    int stage = 0, use = 0;
    for (Tiles tiles(p, kCluster); tiles.more();) {
      int row_tile, column_step;
      tiles.next(p, row_tile, column_step);
      Sums sums;
      int before = -1;
      for (int k = 0; k < p.k_blocks; ++k) {
        barrier_wait(full + stage * 8, use & 1);
        const uint32_t input = stages + stage * kStageBytes + group * (kBlocks * 8192),
                       weight = stages + stage * kStageBytes + kInputBytes;
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kBlockK / 16; ++s)
#pragma unroll
          for (int b = 0; b < kBlocks; ++b)
            wgmma_ss<T>(sums[b], tile_descriptor(input + b * 8192 + s * 32, 0),
                        tile_descriptor(weight + s * 32, 0), k + s > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (before >= 0)
          release(before);
        before = stage;
        if (++stage == p.stages)
          stage = 0, ++use;
      }
      wgmma_wait<0>();
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
        hold(sums[b]);
      release(before);
      const int row = row_tile * kRows + group * (kBlocks * 64) + warp % 4 * 16,
                column = (column_step * kCluster + rank) * kColumns;
      if (column >= p.columns)
        continue; // the cluster's last step has a tile for one block only
      if (p.bias)
        add_bias(p, column, sums);
      if (p.kind == Activation::silu)
        write<Activation::silu>(p, row, column, sums, lines);
      else if (p.kind == Activation::gelu_tanh)
        write<Activation::gelu_tanh>(p, row, column, sums, lines);
      else
        write<Activation::gelu>(p, row, column, sums, lines);
    }
    if (lane == 0)
      wait_stores();
  }
};

template <typename T, int kGroups, int kBlocks, int kColumns, int kCluster>
__global__ void __launch_bounds__(kGroups * 128 + 128, 1)
    gated_kernel(const __grid_constant__ GatedParams p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using G = Gated<T, kGroups, kBlocks, kColumns, kCluster>;
  extern __shared__ char raw[];
  let_next_start();
  const uint32_t stages = (shared_address(raw) + 1023) / 1024 * 1024; // at the same place in all blocks
  const uint32_t lines = stages + p.stages * G::kStageBytes, full = lines + G::kLinesBytes,
                 empty = full + p.stages * 8;
  const int rank = kCluster > 1 ? static_cast<int>(cluster_rank()) : 0;
  if (threadIdx.x == G::kConsumers) {
    prefetch_map(&p.weight);
    prefetch_map(&p.input);
    prefetch_map(&p.out);
    for (int s = 0; s < p.stages; ++s) {
      barrier_init(full + s * 8, 1);
      barrier_init(empty + s * 8, kCluster * G::kConsumers / 32);
    }
    fence_barriers();
  }
  __syncthreads();
  if constexpr (kCluster > 1)
    cluster_arrive(), cluster_wait();
  if (__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0) < kGroups) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(G::kConsumerRegs));
    G::consume(p, rank, stages, lines, full, empty);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(G::kProducerRegs));
    if (threadIdx.x == G::kConsumers)
      G::produce(p, rank, stages, full, empty);
  }
  if constexpr (kCluster > 1) {
    __syncwarp();
    cluster_arrive(), cluster_wait(); // nobody leaves while others still tell its barriers
  }
#endif
}

template <typename T, int kGroups, int kBlocks, int kColumns, int kCluster>
void launch_gated(const Linear &p, Activation kind, const GatedShape &shape, cudaStream_t stream) {
  using G = Gated<T, kGroups, kBlocks, kColumns, kCluster>;
  constexpr auto kKernel = gated_kernel<T, kGroups, kBlocks, kColumns, kCluster>;
  GatedParams params;
  const uint64_t M = static_cast<uint64_t>(p.M), N = static_cast<uint64_t>(p.N),
                 K = static_cast<uint64_t>(p.K);
  params.bias = p.bias, params.kind = kind;
  params.M = static_cast<int>(p.M), params.columns = static_cast<int>(p.N / 2);
  params.k_blocks = static_cast<int>(ceil_div(p.K, kBlockK)),
  params.stages = std::min(shape.stages, G::kMostStages);
  params.row_tiles = static_cast<int>(ceil_div(p.M, G::kRows)), params.band = shape.band;
  params.column_steps = static_cast<int>(ceil_div(params.columns, kColumns * kCluster));
  params.weight_policy = params.row_tiles == 1 ? kEvictFirst : kEvictNormal,
  params.input_policy = params.row_tiles == 1 ? kEvictLast : kEvictNormal;
  params.weight = tensor_map(p.act, p.weight, {K, N / 2, 2}, {K * 2, N * K}, {kBlockK, kColumns, 2});
  params.input = tensor_map(p.act, p.input, {K, M}, {static_cast<uint64_t>(p.ld_input) * 2},
                            {kBlockK, G::kRows / kCluster});
  params.out =
      tensor_map(p.act, p.out, {N / 2, M}, {static_cast<uint64_t>(p.ld_out) * 2}, {kColumns, 16}, false);
  const int units = params.row_tiles * params.column_steps,
            clusters = std::min(units, device_limits().sms / kCluster);
  allow_shared_memory<kKernel>();
  launch_cluster(kKernel, dim3(static_cast<unsigned>(clusters * kCluster)), dim3(G::kThreads),
                 G::bytes(params.stages), kCluster, stream, params);
}

// f(groups, blocks, columns, cluster), as constants, of each shape that there is.
#define LLMRT_GATED_SHAPES(X)                                                                                \
  X(2, 1, 72, 2)                                                                                             \
  X(2, 1, 112, 2) X(3, 1, 56, 2) X(3, 1, 72, 2) X(2, 2, 56, 2) X(2, 2, 72, 2) X(2, 2, 72, 1)

template <typename T>
void launch_shape(const Linear &p, Activation kind, const GatedShape &shape, cudaStream_t stream) {
#define LLMRT_GATED_CASE(groups, blocks, across, together)                                                   \
  if (shape.rows == groups * blocks * 64 && shape.columns == across && shape.cluster == together)            \
    return launch_gated<T, groups, blocks, across, together>(p, kind, shape, stream);
  LLMRT_GATED_SHAPES(LLMRT_GATED_CASE)
#undef LLMRT_GATED_CASE
  throw std::logic_error("gated_linear() has no tiles of " + std::to_string(shape.rows) + " rows and " +
                         std::to_string(shape.columns) + " columns in clusters of " +
                         std::to_string(shape.cluster));
}

} // namespace

const std::vector<GatedShape> &gated_shapes() {
#define LLMRT_GATED_ENTRY(groups, blocks, across, together) {groups * blocks * 64, across, together, 8, 8},
  static const std::vector<GatedShape> shapes = {LLMRT_GATED_SHAPES(LLMRT_GATED_ENTRY)};
#undef LLMRT_GATED_ENTRY
  return shapes;
}

// The least time of the cluster with the most tiles, a tile by what takes it longer: the tensor cores (64 rows by an output column) or
// L2 (the lines of input and weight at its edge), in units that an H200 takes equally long for.
GatedShape choose_gated_shape(int64_t M, int64_t columns) {
  const GatedShape *best = nullptr;
  double least = 0;
  for (const GatedShape &s : gated_shapes()) {
    const int64_t units = ceil_div(M, s.rows) * ceil_div(columns, int64_t{s.columns} * s.cluster);
    const auto rounds = static_cast<double>(ceil_div(units, device_limits().sms / s.cluster));
    const double area = s.rows / 64.0 * s.columns,
                 edge = s.rows / s.cluster + 2.0 * s.columns; // lines of 128 bytes
    const double cost = rounds * std::max(area, edge);
    if (!best || cost < least)
      best = &s, least = cost;
  }
  return *best;
}

void gated_linear(const Linear &p, Activation kind, const GatedShape &shape, cudaStream_t stream) {
  if (p.M <= 0)
    return;
  if (p.act == DType::f16)
    return launch_shape<__half>(p, kind, shape, stream);
  launch_shape<__nv_bfloat16>(p, kind, shape, stream);
}

void gated_linear(const Linear &p, Activation kind, cudaStream_t stream) {
  gated_linear(p, kind, choose_gated_shape(p.M, p.N / 2), stream);
}

#else

const std::vector<GatedShape> &gated_shapes() {
  static const std::vector<GatedShape> none;
  return none;
}
GatedShape choose_gated_shape(int64_t, int64_t) {
  return {};
}
void gated_linear(const Linear &, Activation, const GatedShape &, cudaStream_t) {
  throw std::logic_error(
      "gated_linear() was built without Hopper's instructions: ask gated_linear_applies() first");
}
void gated_linear(const Linear &p, Activation kind, cudaStream_t stream) {
  gated_linear(p, kind, GatedShape{}, stream);
}

#endif // LLMRT_HOPPER

} // namespace llmrt::cuda
