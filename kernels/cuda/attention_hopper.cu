// Prefill attention with Hopper's warpgroup products (after FlashAttention-3, Shah et al., 2024).
//
// A block takes 128 rows (token * group + head) of one sequence and KV head. One warp has the copy engine fetch tiles of 128
// keys and values, page by page. Two warpgroups of 64 rows compute. Each issues the next tile's scores and this tile's
// weighted values together and takes the softmax while the latter run; they take turns, so that one has the tensor cores
// while the other takes its softmax.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/hopper.cuh"

#ifdef LLMRT_HOPPER
#include "kernels/cuda/tensor_map.h"

#include <algorithm>
#endif

namespace llmrt::cuda {

#ifdef LLMRT_HOPPER

namespace {

constexpr int kRows = 128, kTile = 128; // rows of a block, keys of a tile
constexpr int kStages = 2;
constexpr int kThreads = 384; // a producer and two consumers

struct HopperParams {
  AttentionParams attention;
  CUtensorMap pages; // [pages][2 · kv_heads (keys, values) · page_size / 8][head_dim / 64][8 tokens][64]
};

// A warpgroup's turn with the tensor cores: it waits for its own, and gives the other's.
__device__ __forceinline__ void wait_turn(int warpgroup) { asm volatile("bar.sync %0, 256;" ::"r"(3 + warpgroup) : "memory"); }
__device__ __forceinline__ void give_turn(int warpgroup) { asm volatile("bar.arrive %0, 256;" ::"r"(3 + warpgroup) : "memory"); }

template <typename T, int kDim> struct Hopper {
  static constexpr int kTileBytes = kTile * kDim * 2;
  // Tiles of keys and values: for eight tokens, 1024 swizzled bytes of each 64 columns.
  static constexpr int kHalves = kDim / 64, kHalfBytes = 1024, kGroupBytes = kHalves * kHalfBytes;
  static constexpr size_t kBytes = kRows * kDim * 2 + 2 * kStages * kTileBytes + 1024; // aligned by hand
  static constexpr int kScores = kTile / 2, kOut = kDim / 2; // registers of 64 rows

  struct Block {
    int kv_head, seq, start, past, context, first_head, group, rows, row0, begin, end, tiles;
  };

  // Items in the order the consumers need them: K0, K1, V0, K2, V1, … Called by one warp; a lane has a box of each item. Keys
  // behind the end of the context stay what they are in shared memory, for no row sees them; values there become zeros.
  static __device__ void produce(const HopperParams &params, const Block &b, uint32_t k_tiles, uint32_t v_tiles, uint32_t full,
                                 uint32_t empty, uint32_t rest) {
    const AttentionParams &p = params.attention;
    const int lane = threadIdx.x % 32, box_tokens = min(p.page_size, kTile), box_line = lane * box_tokens;
    const int32_t *pages = p.page_table + b.seq * p.page_table_stride;
    // The page of this lane's box, fetched a tile ahead.
    auto page_of = [&](int tile) {
      const int key = b.begin + tile * kTile + box_line;
      return box_line < kTile && key < b.context ? pages[key >> p.page_shift] : 0;
    };
    auto item = [&](int tile, bool is_value, int page) {
      const int stage = tile % kStages, use = tile / kStages, which = (is_value ? kStages : 0) + stage;
      const int key0 = b.begin + tile * kTile, lines = min(b.context - key0, kTile);
      const bool short_values = is_value && lines < kTile;
      const uint32_t to = (is_value ? v_tiles : k_tiles) + stage * kTileBytes, barrier = short_values ? rest : full + which * 8;
      if (lane == 0) {
        barrier_wait(empty + which * 8, use & 1 ^ 1);
        barrier_expect(barrier, (lines + box_tokens - 1) / box_tokens * box_tokens * kDim * 2);
      }
      __syncwarp();
      if (box_line < lines)
        copy_box(to + box_line / 8 * kGroupBytes, &params.pages, 0, 0, 0,
                 (((is_value ? p.kv_heads : 0) + b.kv_head) * p.page_size + (key0 + box_line & p.page_size - 1)) / 8, page, barrier,
                 kEvictNormal);
      if (short_values) { // the last item
        barrier_wait(rest, 0);
        for (int line = lines + lane / 8; line < kTile; line += 4)
#pragma unroll
          for (int h = 0; h < kHalves; ++h)
            asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(to + line / 8 * kGroupBytes + h * kHalfBytes +
                                                                       (line % 8 * 8 + lane % 8) * 16),
                         "r"(0)
                         : "memory");
        fence_async();
        __syncwarp();
        if (lane == 0)
          barrier_arrive(full + which * 8);
      }
    };
    int here = page_of(0), next = page_of(1);
    item(0, false, here);
    for (int tile = 0; tile < b.tiles; ++tile) {
      const int after = page_of(tile + 2);
      if (tile + 1 < b.tiles)
        item(tile + 1, false, next);
      item(tile, true, here);
      here = next, next = after;
    }
  }

  static __device__ void consume(const AttentionParams &p, const Block &b, int group_of_warps, uint32_t q_tile, uint32_t k_tiles,
                                 uint32_t v_tiles, uint32_t full, uint32_t empty) {
    const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
    const int row0 = b.row0 + group_of_warps * 64;
    // This warpgroup's queries.
    constexpr int kChunks = kDim / 8;
    const uint32_t q_rows = q_tile + group_of_warps * 64 * 128;
    for (int i = thread; i < 64 * kChunks; i += 128) {
      const int r = i / kChunks, chunk = i % kChunks, row = row0 + r;
      uint4 value = make_uint4(0, 0, 0, 0);
      if (row < b.rows)
        value = *reinterpret_cast<const uint4 *>(static_cast<const T *>(p.q) + (b.start + row / b.group) * p.ld_q +
                                                 static_cast<int64_t>(b.first_head + row % b.group) * kDim + chunk * 8);
      asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(q_rows + chunk / 8 * (kRows * 128) + r * 128 +
                                                                 (chunk % 8 ^ r % 8) * 16),
                   "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
                   : "memory");
    }
    fence_async();
    if (group_of_warps == 0)
      asm volatile("bar.sync 1, 128;" ::: "memory");
    else
      asm volatile("bar.sync 2, 128;" ::: "memory");

    const int row = row0 + warp * 16 + lane / 4;
    int position[2]; // rows past the end see nothing
#pragma unroll
    for (int i = 0; i < 2; ++i)
      position[i] = row + i * 8 < b.rows ? b.past + (row + i * 8) / b.group : -1;
    // Every key of a tile is seen by every row where it lies in [seen_from, seen_to).
    const int seen_to = row0 + 63 < b.rows ? b.past + row0 / b.group + 1 : 0;
    const int seen_from = p.window ? b.past + min(row0 + 63, b.rows - 1) / b.group - p.window + 1 : 0;
    const float scale = p.softcap > 0 ? kLog2e : p.scale * kLog2e, inner = p.softcap > 0 ? p.scale / p.softcap : 0;

    float o[kOut], s[kScores], m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0}, factor[2];
#pragma unroll
    for (int i = 0; i < kOut; ++i)
      o[i] = 0;
    uint32_t weights[kTile / 16][4];
    auto scores = [&](int tile) {
      const uint32_t k = k_tiles + tile % kStages * kTileBytes;
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d)
        wgmma_ss<T>(s, tile_descriptor(q_rows + d / 4 * (kRows * 128) + d % 4 * 32, 0),
                    tile_descriptor(k + d / 4 * kHalfBytes + d % 4 * 32, 0, kGroupBytes), d > 0);
      wgmma_commit();
    };
    // Scores to weights in base 2; factor is what sums so far shrink by.
    auto softmax = [&](int tile) {
      const int key0 = b.begin + tile * kTile;
      if (p.softcap > 0) {
#pragma unroll
        for (int i = 0; i < kScores; ++i)
          s[i] = p.softcap * tanhf(s[i] * inner);
      }
      if (key0 < seen_from || key0 + kTile > seen_to) {
#pragma unroll
        for (int i = 0; i < kScores; ++i) {
          const int key = key0 + i / 4 * 8 + lane % 4 * 2 + i % 2, at = position[i / 2 % 2];
          if (key > at || (p.window && key <= at - p.window))
            s[i] = -INFINITY;
        }
      }
      float top[2] = {m[0], m[1]};
#pragma unroll
      for (int i = 0; i < kScores; ++i)
        top[i / 2 % 2] = fmaxf(top[i / 2 % 2], s[i]);
      float offset[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 1));
        top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 2));
        offset[i] = top[i] == -INFINITY ? 0.0f : top[i] * scale;
        factor[i] = exp2_of(m[i] * scale - offset[i]);
        m[i] = top[i];
        l[i] *= factor[i];
      }
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        s[i] = exp2_of(fmaf(s[i], scale, -offset[i / 2 % 2]));
        l[i / 2 % 2] += s[i];
      }
    };
    auto pack_weights = [&]() {
#pragma unroll
      for (int k = 0; k < kTile / 16; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          weights[k][i] = pack<T>(s[k * 8 + i * 2], s[k * 8 + i * 2 + 1]);
    };
    auto release = [&](int which) {
      if (lane == 0)
        barrier_arrive(empty + which * 8);
    };

    auto add_values = [&](int tile) {
      const uint32_t v = v_tiles + tile % kStages * kTileBytes;
#pragma unroll
      for (int k = 0; k < kTile / 16; ++k)
        wgmma_rs<T>(o, weights[k], tile_descriptor(v + k * 2 * kGroupBytes, kHalfBytes, kGroupBytes));
      wgmma_commit();
    };

    barrier_wait(full, 0);
    wgmma_fence();
    scores(0);
    wgmma_wait<0>();
    hold(s);
    release(0);
    softmax(0);
    pack_weights();
    const int last = b.tiles - 1;
    if (group_of_warps == 1 && last > 0)
      give_turn(0);
    for (int tile = 0; tile < last; ++tile) {
      const int stage = tile % kStages, next = (tile + 1) % kStages;
      barrier_wait(full + next * 8, (tile + 1) / kStages & 1);
      barrier_wait(full + (kStages + stage) * 8, tile / kStages & 1);
      wait_turn(group_of_warps);
      wgmma_fence();
      scores(tile + 1);
      add_values(tile);
      if (group_of_warps == 0 || tile + 1 < last)
        give_turn(1 - group_of_warps);
      wgmma_wait<1>();
      hold(s);
      release(next);
      softmax(tile + 1);
      // The assembler moves a softmax behind the wait, where no product runs beside it, unless something in front depends on it:
      // an arrival on a condition that never holds, for sums of powers are not negative.
      if (l[0] + l[1] < 0)
        barrier_arrive(empty);
      wgmma_wait<0>();
      hold(o);
      release(kStages + stage);
#pragma unroll
      for (int i = 0; i < kOut; ++i)
        o[i] *= factor[i / 2 % 2];
      pack_weights();
    }
    barrier_wait(full + (kStages + last % kStages) * 8, last / kStages & 1);
    wgmma_fence();
    add_values(last);
    wgmma_wait<0>();
    hold(o);

#pragma unroll
    for (int i = 0; i < 2; ++i) {
      l[i] += __shfl_xor_sync(0xffffffffu, l[i], 1);
      l[i] += __shfl_xor_sync(0xffffffffu, l[i], 2);
      if (row + i * 8 >= b.rows)
        continue;
      T *to = static_cast<T *>(p.out) + (b.start + (row + i * 8) / b.group) * p.ld_out +
              static_cast<int64_t>(b.first_head + (row + i * 8) % b.group) * kDim + lane % 4 * 2;
      const float inverse = 1.0f / l[i];
#pragma unroll
      for (int d = 0; d < kDim / 8; ++d)
        *reinterpret_cast<uint32_t *>(to + d * 8) = pack<T>(o[d * 4 + i * 2] * inverse, o[d * 4 + i * 2 + 1] * inverse);
    }
  }

  static __device__ void run(const HopperParams &params) {
    const AttentionParams &p = params.attention;
    extern __shared__ char raw[];
    __shared__ uint64_t barriers[4 * kStages + 1]; // full: keys, values; empty: keys, values; values that need zeros behind them
    const uint32_t base = (shared_address(raw) + 1023) / 1024 * 1024;
    const uint32_t q_tile = base, k_tiles = base + kRows * kDim * 2, v_tiles = k_tiles + kStages * kTileBytes;
    const uint32_t full = shared_address(barriers), empty = full + 2 * kStages * 8, rest = empty + 2 * kStages * 8;
    if (threadIdx.x == 0) {
      for (int i = 0; i < 2 * kStages; ++i) {
        barrier_init(full + i * 8, 1);
        barrier_init(empty + i * 8, 8); // lane 0 of each consumer warp
      }
      barrier_init(rest, 1);
      fence_async();
    }
    wait_for_previous();
    Block b;
    b.kv_head = blockIdx.y, b.seq = blockIdx.z;
    b.start = p.seq_starts[b.seq];
    const int queries = p.seq_starts[b.seq + 1] - b.start, context = p.context_lens[b.seq];
    find_group(p, b.kv_head, b.first_head, b.group);
    b.rows = queries * b.group;
    b.row0 = (gridDim.x - 1 - blockIdx.x) * kRows; // the last rows see the most keys and start first
    if (b.rows <= kDecodeRows || b.row0 >= b.rows || context == 0)
      return;
    b.past = context - queries, b.context = context;
    b.begin = p.window ? max(0, b.past + b.row0 / b.group - p.window + 1) / kTile * kTile : 0;
    b.end = b.past + min(queries - 1, (b.row0 + kRows - 1) / b.group) + 1;
    b.tiles = (b.end - b.begin + kTile - 1) / kTile;
    __syncthreads();

    const int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
    if (warpgroup == 0) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      if (threadIdx.x < 32)
        produce(params, b, k_tiles, v_tiles, full, empty, rest);
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      consume(p, b, warpgroup - 1, q_tile, k_tiles, v_tiles, full, empty);
    }
  }
};

template <typename T, int kDim> __global__ void __launch_bounds__(kThreads, 1) hopper_kernel(const __grid_constant__ HopperParams p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  let_next_start();
  Hopper<T, kDim>::run(p);
#endif
}

template <typename T, int kDim> void run(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  HopperParams params;
  params.attention = p;
  const uint64_t groups = uint64_t{2} * p.kv_heads * p.page_size / 8, pages = uint64_t{1} << 30; // more than there are
  params.pages = tensor_map(std::is_same_v<T, __half> ? DType::f16 : DType::bf16, p.pool, {64, 8, kDim / 64, groups, pages},
                            {kDim * 2, 128, kDim * 16, static_cast<uint64_t>(p.page_stride) * 2},
                            {64, 8, kDim / 64, static_cast<uint32_t>(std::min(p.page_size, kTile)) / 8, 1});
  allow_shared_memory<hopper_kernel<T, kDim>>();
  const int64_t blocks = ceil_div(static_cast<int64_t>(a.max_query) * a.max_group, kRows);
  launch(hopper_kernel<T, kDim>,
         dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(p.kv_heads), static_cast<unsigned>(a.S)), dim3(kThreads),
         Hopper<T, kDim>::kBytes, stream, params);
}

} // namespace

#endif // LLMRT_HOPPER

template <typename T> bool hopper_prefill(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
#if defined(LLMRT_HOPPER)
  const bool rows_fit = p.wide_q && reinterpret_cast<uintptr_t>(p.pool) % 16 == 0 && p.page_stride % 8 == 0 &&
                        reinterpret_cast<uintptr_t>(p.out) % 4 == 0 && p.ld_out % 2 == 0;
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
