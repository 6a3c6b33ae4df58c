// Products of some rows and large weights on Hopper: the weight is streamed once, by all multiprocessors alike.
//
// A block has all input rows (the M side of the warpgroup products, 64 for each of one or two warpgroups) and takes tiles of so many
// weight rows (the N side) that all blocks together have one or two rounds of them. One thread has the copy engine fill a ring of
// stages of 64 k, the first weights before the previous kernel has ended; the warpgroups multiply.
//
// Where there are too few weight rows for that, two, four or eight blocks of a cluster share a tile along k. Each then has some of the
// tile's columns to finish: the copy engines bring it the others' sums of these, and it adds them in fixed order.
//
// A gated product takes equally many gates and what they gate into a tile, so that a thread has both sums of an output.
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/wide_shape.h"

#ifdef LLMRT_HOPPER
#include "kernels/cuda/tensor_map.h"

#include <algorithm>
#include <array>
#include <atomic>
#endif

namespace llmrt::cuda {

bool wide_linear_applies(const Linear &p, bool gated) {
#ifdef LLMRT_HOPPER
  const auto aligned = [](const void *data, int64_t ld) { return reinterpret_cast<uintptr_t>(data) % 16 == 0 && ld % 8 == 0; };
  return device_limits().major == 9 && p.M <= (gated ? kWideMaxGatedRows : kWideMaxRows) && p.N > 0 && p.K > 0 && p.act != DType::f32 &&
         p.act == p.weight_type && p.act == p.out_type && p.N % (gated ? 16 : 8) == 0 && p.N < 1 << 30 && p.K < 1 << 30 &&
         aligned(p.weight, p.K) && aligned(p.input, p.ld_input) && aligned(p.out, p.ld_out);
#else
  (void)p, (void)gated;
  return false;
#endif
}

#ifdef LLMRT_HOPPER

namespace {

constexpr int kBlockK = 64;

constexpr int log2_of(int splits) {
  return splits < 2 ? 0 : 1 + log2_of(splits / 2);
}

struct WideParams {
  CUtensorMap weight, input;
  void *out;
  int64_t ld_out;
  const float *bias;
  int M, columns; // of the output
  int k_blocks, tiles, stages;
  int splits_log2; // blocks that share a tile: 1, 2, 4 or 8
  Activation kind;
  __host__ __device__ int splits() const { return 1 << splits_log2; }
};

// The k blocks of a block, one after the other, tile by tile.
struct Walk {
  int tile, begin, end, step;
  __device__ Walk(const WideParams &p, int rank)
      : tile(static_cast<int>(blockIdx.x) >> p.splits_log2), begin(p.k_blocks * rank >> p.splits_log2),
        end(p.k_blocks * (rank + 1) >> p.splits_log2), step(static_cast<int>(gridDim.x) >> p.splits_log2) {}
};

template <typename T, int kGroups, int kColumns, bool kGated, bool kSplit> struct Wide {
  static_assert(!(kGated && kSplit) && kColumns % 16 == 0);
  static constexpr int kConsumers = kGroups * 128;
  // Two warpgroups need more registers than threads get by themselves: they are handed those of a third, of which one thread copies.
  static constexpr bool kHandsRegisters = kGroups == 2;
  static constexpr int kThreads = kConsumers + (kHandsRegisters ? 128 : 32);
  static constexpr int kInputBytes = kGroups * 64 * kBlockK * 2, kWeightBytes = kColumns * kBlockK * 2,
                       kStageBytes = kInputBytes + kWeightBytes;
  static constexpr int kQuads = kColumns / 8;                  // of a thread: two columns of two rows each
  static constexpr int kQuadBytes = kConsumers * 4 * sizeof(float); // of all threads
  using Sums = float[kColumns / 2];                            // of a thread; as warpgroup products leave them

  // Quad q of a tile is finished by block q % splits of the cluster: so many by block `rank`.
  static __host__ __device__ int quads_of(int rank, int splits_log2) { return (kQuads - rank + (1 << splits_log2) - 1) >> splits_log2; }
  // From each of the others.
  static __host__ __device__ int part_bytes(int splits_log2) { return quads_of(0, splits_log2) * kQuadBytes; }
  static __host__ __device__ int received_bytes(int splits_log2) {
    return kSplit ? ((1 << splits_log2) - 1) * part_bytes(splits_log2) : 0;
  }
  static int most_stages(int splits_log2) { return std::min(12, (226 * 1024 - 1024 - 256 - received_bytes(splits_log2)) / kStageBytes); }
  static size_t bytes(int stages, int splits_log2) { // aligned by hand
    return static_cast<size_t>(1024 + stages * (kStageBytes + 16) + received_bytes(splits_log2) + 8);
  }

  static __device__ __forceinline__ void fetch_weight(const WideParams &p, int tile, int k, uint32_t stage, uint32_t full) {
    barrier_expect(full, kWeightBytes + p.M * (kBlockK * 2));
    if constexpr (kGated)
      copy_box(stage + kInputBytes, &p.weight, k * kBlockK, tile * (kColumns / 2), 0, full, kEvictFirst);
    else
      copy_box(stage + kInputBytes, &p.weight, k * kBlockK, tile * kColumns, full, kEvictFirst);
  }
  static __device__ __forceinline__ void fetch_input(const WideParams &p, int k, uint32_t stage, uint32_t full) {
    copy_box(stage, &p.input, k * kBlockK, 0, full, kEvictLast);
  }

  // As many weights as there are stages for, which no kernel in front writes.
  static __device__ void produce_early(const WideParams &p, int rank, uint32_t stages, uint32_t full) {
    const Walk w(p, rank);
    for (int s = 0; s < min(p.stages, w.end - w.begin); ++s)
      fetch_weight(p, w.tile, w.begin + s, stages + s * kStageBytes, full + s * 8);
  }
  static __device__ void produce(const WideParams &p, int rank, uint32_t stages, uint32_t full, uint32_t empty) {
    Walk w(p, rank);
    const int early = min(p.stages, w.end - w.begin);
    wait_for_previous();
    for (int s = 0; s < early; ++s)
      fetch_input(p, w.begin + s, stages + s * kStageBytes, full + s * 8);
    int stage = early == p.stages ? 0 : early, use = early == p.stages;
    for (int k = w.begin + early; w.tile < p.tiles; w.tile += w.step, k = w.begin)
      for (; k < w.end; ++k) {
        barrier_wait(empty + stage * 8, use & 1 ^ 1);
        fetch_weight(p, w.tile, k, stages + stage * kStageBytes, full + stage * 8);
        fetch_input(p, k, stages + stage * kStageBytes, full + stage * 8);
        if (++stage == p.stages)
          stage = 0, ++use;
      }
  }

  // Calls f(quad) for those that this block finishes (`mine`) or for the others.
  template <typename F> static __device__ __forceinline__ void each_quad(const WideParams &p, int rank, bool mine, F &&f) {
#pragma unroll
    for (int q = 0; q < kQuads; ++q)
      if (((q & (p.splits() - 1)) == rank) == mine)
        f(q);
  }

  // Parts are in the order of the blocks behind the one that finishes them; [quads][threads] of four sums. They leave through the ring,
  // which has nothing to come any more.
  static __device__ __forceinline__ void exchange(const WideParams &p, int rank, Sums &sums, uint32_t ring, uint32_t received,
                                                  uint32_t arrived) {
    const int others = p.splits() - 1, part = part_bytes(p.splits_log2);
    sync_consumers(); // nobody reads the ring
    each_quad(p, rank, false, [&](int q) {
      const int from = (rank - q - 1) & others; // this block, as the quad's owner counts
      store_shared(ring + from * part + (q >> p.splits_log2) * kQuadBytes + threadIdx.x * 16, sums + q * 4);
    });
    fence_async();
    cluster_wait(); // the others have begun, and await what comes
    sync_consumers();
    if (static_cast<int>(threadIdx.x) < others) {
      const int from = static_cast<int>(threadIdx.x), owner = (rank - from - 1) & others;
      send_bulk(of_block(received + from * part, owner), ring + from * part, quads_of(owner, p.splits_log2) * kQuadBytes,
                of_block(arrived, owner));
    }
    wait_for_blocks(arrived, 0);
    for (int from = 0; from < others; ++from)
      each_quad(p, rank, true, [&](int q) {
        add_shared(sums + q * 4, received + from * part + (q >> p.splits_log2) * kQuadBytes + threadIdx.x * 16);
      });
    __syncwarp();
    cluster_arrive_only(); // this block has what the others sent
  }
  static __device__ __forceinline__ void sync_consumers() { asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory"); }
  static __device__ __forceinline__ void store_shared(uint32_t to, const float *v) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
  }
  static __device__ __forceinline__ void add_shared(float *sums, uint32_t from) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(from) : "memory");
    sums[0] += v.x, sums[1] += v.y, sums[2] += v.z, sums[3] += v.w;
  }

  // Of a quad's four sums: two columns of a row, and of the eighth row from there.
  static __device__ __forceinline__ void store(const WideParams &p, int row, int column, uint32_t first, uint32_t second) {
    T *out = static_cast<T *>(p.out) + row * p.ld_out + column;
    if (row < p.M)
      *reinterpret_cast<uint32_t *>(out) = first;
    if (row + 8 < p.M)
      *reinterpret_cast<uint32_t *>(out + 8 * p.ld_out) = second;
  }
  static __device__ __forceinline__ void add_bias(const float *bias, float *quad) {
    const float a = bias[0], b = bias[1];
    quad[0] += a, quad[1] += b, quad[2] += a, quad[3] += b;
  }

  template <Activation kKind> static __device__ __forceinline__ void write_gated(const WideParams &p, int row, int column, Sums &sums) {
#pragma unroll
    for (int q = 0; q < kQuads / 2; ++q) {
      const int at = column + q * 8;
      if (at >= p.columns)
        continue;
      float *gate = sums + q * 4, *up = sums + (kQuads / 2 + q) * 4;
      if (p.bias)
        add_bias(p.bias + at, gate), add_bias(p.bias + p.columns + at, up);
      store(p, row, at, pack<T>(activate<kKind>(gate[0]) * up[0], activate<kKind>(gate[1]) * up[1]),
            pack<T>(activate<kKind>(gate[2]) * up[2], activate<kKind>(gate[3]) * up[3]));
    }
  }
  static __device__ __forceinline__ void write(const WideParams &p, int rank, int tile, Sums &sums) {
    const int lane = threadIdx.x % 32, row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
    const int column = tile * (kGated ? kColumns / 2 : kColumns) + lane % 4 * 2;
    if constexpr (kGated) {
      if (p.kind == Activation::silu)
        write_gated<Activation::silu>(p, row, column, sums);
      else if (p.kind == Activation::gelu_tanh)
        write_gated<Activation::gelu_tanh>(p, row, column, sums);
      else
        write_gated<Activation::gelu>(p, row, column, sums);
    } else {
      each_quad(p, rank, true, [&](int q) {
        float *s = sums + q * 4;
        const int at = column + q * 8;
        if (at >= p.columns)
          return;
        if (p.bias)
          add_bias(p.bias + at, s);
        store(p, row, at, pack<T>(s[0], s[1]), pack<T>(s[2], s[3]));
      });
    }
  }

  static __device__ void consume(const WideParams &p, int rank, uint32_t stages, uint32_t full, uint32_t empty, uint32_t received,
                                 uint32_t arrived) {
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
    int stage = 0, use = 0;
    for (Walk w(p, rank); w.tile < p.tiles; w.tile += w.step) {
      Sums sums;
#pragma unroll
      for (float &s : sums)
        s = 0;
      hold(sums); // zeros before the first product begins
      int before = -1;
      for (int k = w.begin; k < w.end; ++k) {
        barrier_wait(full + stage * 8, use & 1);
        const uint32_t input = stages + stage * kStageBytes + group * (64 * kBlockK * 2), weight = stages + stage * kStageBytes + kInputBytes;
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kBlockK / 16; ++s)
          wgmma_ss<T>(sums, tile_descriptor(input + s * 32, 0), tile_descriptor(weight + s * 32, 0), 1);
        wgmma_commit();
        wgmma_wait<1>();
        if (before >= 0 && lane == 0)
          barrier_arrive(empty + before * 8);
        before = stage;
        if (++stage == p.stages)
          stage = 0, ++use;
      }
      wgmma_wait<0>();
      hold(sums);
      if (before >= 0 && lane == 0)
        barrier_arrive(empty + before * 8);
      if constexpr (kSplit)
        exchange(p, rank, sums, stages, received, arrived);
      write(p, rank, w.tile, sums);
    }
  }
};

template <typename T, int kGroups, int kColumns, bool kGated, bool kSplit>
__global__ void __launch_bounds__(Wide<T, kGroups, kColumns, kGated, kSplit>::kThreads, 1) wide_kernel(const __grid_constant__ WideParams p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using W = Wide<T, kGroups, kColumns, kGated, kSplit>;
  extern __shared__ char raw[];
  let_next_start();
  const uint32_t stages = (shared_address(raw) + 1023) / 1024 * 1024, received = stages + p.stages * W::kStageBytes;
  const uint32_t full = received + W::received_bytes(p.splits_log2), empty = full + p.stages * 8, arrived = empty + p.stages * 8;
  const int rank = kSplit ? static_cast<int>(cluster_rank()) : 0;
  if (threadIdx.x == W::kConsumers) {
    prefetch_map(&p.weight);
    prefetch_map(&p.input);
    for (int s = 0; s < p.stages; ++s) {
      barrier_init(full + s * 8, 1);
      barrier_init(empty + s * 8, W::kConsumers / 32);
    }
    if constexpr (kSplit)
      barrier_init(arrived, 1);
    fence_barriers();
    if constexpr (kSplit) // its own quads, from each of the others
      barrier_expect(arrived, (p.splits() - 1) * W::quads_of(rank, p.splits_log2) * W::kQuadBytes);
    W::produce_early(p, rank, stages, full);
  }
  __syncthreads();
  if constexpr (kSplit)
    cluster_arrive_only(); // fence_barriers() has published the barriers
  if (__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0) < kGroups) {
    if constexpr (W::kHandsRegisters)
      asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    W::consume(p, rank, stages, full, empty, received, arrived);
  } else {
    if constexpr (W::kHandsRegisters)
      asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == W::kConsumers)
      W::produce(p, rank, stages, full, empty);
    __syncwarp();
    if constexpr (kSplit)
      cluster_wait(), cluster_arrive_only();
  }
  if constexpr (kSplit) {
    __syncwarp();
    cluster_wait(); // nobody leaves before what it sent has arrived
  }
#endif
}

template <typename T, int kGroups, int kColumns, bool kGated, bool kSplit>
void launch_wide(const Linear &p, Activation kind, int splits, cudaStream_t stream) {
  using W = Wide<T, kGroups, kColumns, kGated, kSplit>;
  constexpr auto kKernel = wide_kernel<T, kGroups, kColumns, kGated, kSplit>;
  WideParams params;
  const uint64_t M = static_cast<uint64_t>(p.M), N = static_cast<uint64_t>(p.N), K = static_cast<uint64_t>(p.K);
  params.out = p.out, params.ld_out = p.ld_out, params.bias = p.bias, params.kind = kind;
  params.M = static_cast<int>(p.M), params.columns = static_cast<int>(kGated ? p.N / 2 : p.N);
  params.k_blocks = static_cast<int>(ceil_div(p.K, kBlockK)), params.tiles = static_cast<int>(ceil_div(p.N, kColumns));
  params.splits_log2 = log2_of(splits), params.stages = W::most_stages(params.splits_log2);
  if (W::received_bytes(params.splits_log2) > params.stages * W::kStageBytes) // what is sent lies in the ring
    throw std::logic_error("wide_linear(): the sums of " + std::to_string(kColumns) + " columns do not fit in the ring");
  params.weight = kGated ? tensor_map(p.act, p.weight, {K, N / 2, 2}, {K * 2, N * K}, {kBlockK, kColumns / 2, 2})
                         : tensor_map(p.act, p.weight, {K, N}, {K * 2}, {kBlockK, kColumns});
  // A box of no more rows than there are: rows beyond the array, though zeros, take longer to copy than those within.
  params.input = tensor_map(p.act, p.input, {K, M}, {static_cast<uint64_t>(p.ld_input) * 2}, {kBlockK, static_cast<uint32_t>(p.M)});
  const int blocks = kSplit ? params.tiles * splits : std::min(params.tiles, device_limits().sms);
  allow_shared_memory<kKernel>();
  launch_cluster(kKernel, dim3(static_cast<unsigned>(blocks)), dim3(W::kThreads), W::bytes(params.stages, params.splits_log2),
                 static_cast<unsigned>(splits), stream, params);
}

// Clusters of so many blocks, each with a multiprocessor to itself, that the current device runs at once. Asked of each device when it
// is first wanted: a device that nobody uses must not be initialised.
int clusters_at_once(int splits) {
  constexpr int kMost = 64;
  static std::array<std::array<std::atomic<int>, 9>, kMost> known{};
  int device = 0, clusters = 0;
  require(cudaGetDevice(&device), "device");
  std::atomic<int> &here = known[static_cast<size_t>(device & (kMost - 1))][static_cast<size_t>(splits)];
  if (const int count = here.load(std::memory_order_relaxed))
    return count;
  using W = Wide<__nv_bfloat16, 1, 64, false, true>;
  constexpr auto kKernel = wide_kernel<__nv_bfloat16, 1, 64, false, true>;
  allow_shared_memory<kKernel>();
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(splits)), config.blockDim = dim3(W::kThreads);
  const int log2 = log2_of(splits);
  config.dynamicSmemBytes = W::bytes(W::most_stages(log2), log2);
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(splits), cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster, config.numAttrs = 1;
  require(cudaOccupancyMaxActiveClusters(&clusters, kKernel, &config), "clusters");
  here.store(clusters, std::memory_order_relaxed);
  return clusters;
}

// X(columns) of tiles that are a block's, and of those that are shared.
#define LLMRT_WIDE_WHOLE(X) X(112) X(128) X(144) X(160) X(192)
#define LLMRT_WIDE_SPLIT(X) X(64) X(80) X(96) X(112) X(128) X(144)

template <typename T, int kGroups>
void launch_columns(const Linear &p, const std::optional<Activation> &gate, const WideShape &shape, cudaStream_t stream) {
  const Activation kind = gate.value_or(Activation::silu);
#define LLMRT_WIDE_CASE(n)                                                                                             \
  if (shape.columns == n && shape.splits == 1) {                                                                       \
    if constexpr (kGroups == 1)                                                                                        \
      if (gate)                                                                                                        \
        return launch_wide<T, 1, n, true, false>(p, kind, 1, stream);                                                  \
    if (!gate)                                                                                                         \
      return launch_wide<T, kGroups, n, false, false>(p, kind, 1, stream);                                             \
  }
  LLMRT_WIDE_WHOLE(LLMRT_WIDE_CASE)
#undef LLMRT_WIDE_CASE
#define LLMRT_WIDE_CASE(n)                                                                                             \
  if (shape.columns == n && shape.splits > 1 && !gate)                                                                 \
    return launch_wide<T, kGroups, n, false, true>(p, kind, shape.splits, stream);
  LLMRT_WIDE_SPLIT(LLMRT_WIDE_CASE)
#undef LLMRT_WIDE_CASE
  throw std::logic_error("wide_linear() has no tiles of " + std::to_string(shape.columns) + " columns shared by " +
                         std::to_string(shape.splits));
}

template <typename T>
void launch_rows(const Linear &p, const std::optional<Activation> &gate, const WideShape &shape, cudaStream_t stream) {
  if (p.M <= 64)
    launch_columns<T, 1>(p, gate, shape, stream);
  else
    launch_columns<T, 2>(p, gate, shape, stream);
}

} // namespace

std::vector<WideShape> wide_shapes(int64_t N, int64_t K, bool gated) {
  std::vector<WideShape> shapes;
#define LLMRT_WIDE_ENTRY(n) shapes.push_back({n, 1});
  LLMRT_WIDE_WHOLE(LLMRT_WIDE_ENTRY)
#undef LLMRT_WIDE_ENTRY
  if (gated)
    return shapes;
#define LLMRT_WIDE_ENTRY(n)                                                                                            \
  for (int splits = 2; splits <= 8; splits *= 2)                                                                       \
    if (ceil_div(N, n) <= clusters_at_once(splits) && ceil_div(K, kBlockK) >= splits)                                  \
      shapes.push_back({n, splits});
  LLMRT_WIDE_SPLIT(LLMRT_WIDE_ENTRY)
#undef LLMRT_WIDE_ENTRY
  return shapes;
}

// The least time, in elements of the weight that a multiprocessor's share of the memory reads meanwhile. What the blocks with the most to
// do read beyond an even share counts by a third, for fewer multiprocessors read nearly as fast as all; rows of the input beside a
// tile take a little, and what clusters send comes on top. Fitted to 20 weights on an H200 (`bench_cuda_kernels sweep-wide`): 0.1% behind
// the best shape in the mean, 4% at worst.
WideShape choose_wide_shape(int64_t M, int64_t N, int64_t K, bool gated) {
  constexpr double kUneven = 0.3, kInput = 0.05, kSent = 200;
  const double share = static_cast<double>(N) * static_cast<double>(K) / device_limits().sms;
  WideShape best{};
  double least = 0;
  for (const WideShape &s : wide_shapes(N, K, gated)) {
    const int64_t rounds = s.splits > 1 ? 1 : ceil_div(ceil_div(N, s.columns), device_limits().sms);
    const double read = static_cast<double>(rounds * s.columns * ceil_div(ceil_div(K, kBlockK), s.splits) * kBlockK);
    const double sent = kSent * static_cast<double>(ceil_div(M, 64)) * s.columns * (s.splits - 1) / s.splits;
    const double cost = (share + kUneven * (read - share)) * (1 + kInput * static_cast<double>(M) / s.columns) + sent;
    if (best.columns == 0 || cost < least)
      best = s, least = cost;
  }
  return best;
}

void wide_linear(const Linear &p, std::optional<Activation> gate, const WideShape &shape, cudaStream_t stream) {
  if (p.M <= 0)
    return;
  if (!wide_linear_applies(p, gate.has_value()))
    throw std::logic_error("wide_linear() does not take this product: ask wide_linear_applies() first");
  if (p.act == DType::f16)
    return launch_rows<__half>(p, gate, shape, stream);
  launch_rows<__nv_bfloat16>(p, gate, shape, stream);
}

void wide_linear(const Linear &p, std::optional<Activation> gate, cudaStream_t stream) {
  wide_linear(p, gate, choose_wide_shape(p.M, p.N, p.K, gate.has_value()), stream);
}

#else

std::vector<WideShape> wide_shapes(int64_t, int64_t, bool) {
  return {};
}
WideShape choose_wide_shape(int64_t, int64_t, int64_t, bool) {
  return {};
}
void wide_linear(const Linear &, std::optional<Activation>, const WideShape &, cudaStream_t) {
  throw std::logic_error("wide_linear() was built without Hopper's instructions: ask wide_linear_applies() first");
}
void wide_linear(const Linear &p, std::optional<Activation> gate, cudaStream_t stream) {
  wide_linear(p, gate, WideShape{}, stream);
}

#endif // LLMRT_HOPPER

} // namespace llmrt::cuda
