// Prefill attention with Hopper's warpgroup products (after FlashAttention-3, Shah et al., 2024).
//
// A block, one a multiprocessor, takes 128 rows (token * group + head) of one sequence and KV head after the other. One warp
// finds out which, one has the copy engine fetch tiles of 128 keys and values, page by page, two fetch the queries. Two
// warpgroups of 64 rows, which keep their queries in registers, compute. Each issues the next tile's scores and this tile's
// weighted values together and takes the softmax while the latter run; they take turns, so that one has the tensor cores while
// the other takes its softmax. The next tile may be the first of the next rows: what was computed leaves while its products run.
//
// Where sequences are long, two blocks are a cluster and take neighbouring rows: each has every other page fetched, for both. They
// walk the same tiles, of which the last, or with a window the first, may be one that a block's rows do not see.
#include "kernels/cuda/attention.cuh"

#ifdef LLMRT_HOPPER
#include "kernels/cuda/attention_hopper_compute.cuh"
#include "kernels/cuda/attention_hopper_fetch.cuh"
#include "kernels/cuda/attention_hopper_tiles.cuh"
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/tensor_map.h"

#include <algorithm>
#endif

namespace llmrt::cuda {

#ifdef LLMRT_HOPPER

namespace {

constexpr int kThreads = 384; // a warpgroup that fetches and two that compute

// Lays out shared memory, and gives each warp its part.
template <typename T, int kDim, int kCluster> __device__ void run_block(const HopperParams &params) {
  using Tiles = HopperTiles<kDim>;
  extern __shared__ char raw[];
  __shared__ uint64_t barriers[5 * kStages + 9];
  __shared__ __align__(16) RowBlock blocks[4];
  const int rank = kCluster > 1 ? static_cast<int>(cluster_rank()) : 0;
  Places at;
  at.queries = (shared_address(raw) + 1023) / 1024 * 1024; // like all places, the same in all blocks of a cluster
  at.keys = at.queries + 2 * Tiles::kQueryBytes, at.values = at.keys + kStages * Tiles::kTileBytes;
  at.full = shared_address(barriers), at.empty = at.full + 2 * kStages * 8, at.rest = at.empty + 2 * kStages * 8;
  at.block = shared_address(blocks), at.mail = at.block + 2 * kBlockBytes;
  at.told = at.rest + kStages * 8, at.done = at.told + 16, at.ready = at.done + 16, at.sent = at.ready + 16, at.asked = at.sent + 16;
  if (threadIdx.x == 0) {
    prefetch_map(&params.pages);
    for (int i = 0; i < 2 * kStages; ++i) {
      barrier_init(at.full + i * 8, 1);
      barrier_init(at.empty + i * 8, 8 * kCluster); // warps that compute
    }
    for (int i = 0; i < kStages; ++i)
      barrier_init(at.rest + i * 8, 1);
    barrier_init(at.asked, 1);
    for (int i = 0; i < 2; ++i) {
      barrier_init(at.told + i * 8, 1);
      barrier_init(at.done + i * 8, kThreads - 32 + (rank == 0 ? kCluster - 1 : 0)); // all but the warp that deals
      barrier_init(at.sent + i * 8, 1);
      barrier_init(at.ready + i * 8, kQueryWarps * 32);
    }
    fence_barriers();
  }
  __syncthreads();
  if constexpr (kCluster > 1)
    cluster_arrive_only(), cluster_wait(); // fence_barriers() has published the barriers

  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp < 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (warp == 0)
      fetch_tiles<kDim, kCluster>(params, at, rank);
    else if (warp == 1 && rank == 0)
      deal<kCluster>(params, at);
    else if (warp == 1 && threadIdx.x % 32 == 0)
      deal_sent(at);
    else if (warp > 1)
      fetch_queries<T, kDim>(params.attention, at);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    compute<T, kDim, kCluster>(params.attention, warp / 4 - 1, at);
  }
  if constexpr (kCluster > 1) {
    __syncwarp();
    cluster_arrive(), cluster_wait(); // nobody leaves while others still tell its barriers
  }
}

template <typename T, int kDim, int kCluster>
__global__ void __launch_bounds__(kThreads, 1) hopper_kernel(const __grid_constant__ HopperParams p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  let_next_start();
  run_block<T, kDim, kCluster>(p);
#endif
}

template <typename T, int kDim, int kCluster> void run(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  HopperParams params;
  params.attention = p;
  const uint64_t groups = uint64_t{2} * p.kv_heads * p.page_size / 8, pages = uint64_t{1} << 30; // more than there are
  params.pages = tensor_map(std::is_same_v<T, __half> ? DType::f16 : DType::bf16, p.pool, {64, 8, kDim / 64, groups, pages},
                            {kDim * 2, 128, kDim * 16, static_cast<uint64_t>(p.page_stride) * 2},
                            {64, 8, kDim / 64, static_cast<uint32_t>(std::min(p.page_size, kTile / kCluster)) / 8, 1});
  allow_shared_memory<hopper_kernel<T, kDim, kCluster>>();
  params.seqs = a.S, params.max_group = a.max_group, params.counters = static_cast<int *>(a.workspace);
  const int64_t numbers = ceil_div(static_cast<int64_t>(a.max_query) * a.max_group, kRows * kCluster) * p.kv_heads * a.S;
  params.numbers = static_cast<int>(std::min<int64_t>(numbers, 1 << 30));
  const int clusters = std::min(params.numbers, device_limits().sms / kCluster);
  launch_cluster(hopper_kernel<T, kDim, kCluster>, dim3(static_cast<unsigned>(clusters * kCluster)), dim3(kThreads),
                 HopperTiles<kDim>::kBytes, kCluster, stream, params);
}
template <typename T, int kDim> void run(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  if (static_cast<int64_t>(a.max_query) * a.max_group >= a.pair_rows) // below, too many pairs have a half without rows
    return run<T, kDim, 2>(a, p, stream);
  run<T, kDim, 1>(a, p, stream);
}

} // namespace

#endif // LLMRT_HOPPER

template <typename T> bool hopper_prefill(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
#if defined(LLMRT_HOPPER)
  const bool rows_fit = p.wide_q && reinterpret_cast<uintptr_t>(p.pool) % 16 == 0 && p.page_stride % 8 == 0 &&
                        reinterpret_cast<uintptr_t>(p.out) % 16 == 0 && p.ld_out % 8 == 0;
  if (device_limits().major != 9 || !rows_fit || p.page_shift < 3) // a box has whole swizzled blocks of eight lines
    return false;
  if (p.head_dim == 128)
    return run<T, 128>(a, p, stream), true;
  if (p.head_dim == 64)
    return run<T, 64>(a, p, stream), true;
#endif
  return false;
}
template bool hopper_prefill<__nv_bfloat16>(const Attention &, const AttentionParams &, cudaStream_t);
template bool hopper_prefill<__half>(const Attention &, const AttentionParams &, cudaStream_t);

} // namespace llmrt::cuda
