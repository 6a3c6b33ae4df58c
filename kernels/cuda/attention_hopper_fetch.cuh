// The warpgroup of Hopper's prefill attention (attention_hopper.cu) that fetches: one warp finds row blocks and tells the others, one
// has the copy engine fetch their keys and values, two fetch their queries.
#pragma once

#include "kernels/cuda/attention_hopper_tiles.cuh"
#include "kernels/cuda/hopper.cuh"

namespace llmrt::cuda {

constexpr int kQueryWarps = 2;

// Called by one warp: finds row blocks when more are asked for, and tells the others, of all the cluster.
template <int kCluster> __device__ void deal(const HopperParams &params, const Places &at) {
  const AttentionParams &p = params.attention;
  const int lane = threadIdx.x % 32;
  const int clusters = static_cast<int>(gridDim.x) / kCluster;
  const bool dealt = clusters < params.numbers; // else a cluster has one number
  RowBlocks<kRows * kCluster, kTile> row_blocks(p, params.seqs, params.max_group);
  auto draw = [&]() {
    wait_for_previous();
    int number = params.numbers;
    if (dealt && lane == 0)
      number = clusters + atomicAdd(params.counters, 1);
    return __shfl_sync(0xffffffffu, number, 0);
  };
  int number = static_cast<int>(blockIdx.x) / kCluster;
  for (int n = 0;; ++n) {
    if (n > 0) {
      barrier_wait(at.asked, n - 1 & 1);
      number = draw();
    }
    RowBlock b{};
    while (number < params.numbers && row_blocks.find(number, b) && b.tiles == 0)
      number = draw();
    const int slot = n & 1;
    if (lane == 0) {
      barrier_wait(at.done + slot * 8, n / 2 & 1 ^ 1);
      write_block(at.block + slot * kBlockBytes, b);
      barrier_arrive(at.told + slot * 8);
#pragma unroll
      for (int r = 1; r < kCluster; ++r) {
        b.row0 += kRows;
        send_block(of_block(at.mail + slot * kBlockBytes, r), b, of_block(at.sent + slot * 8, r));
      }
    }
    __syncwarp();
    if (b.tiles == 0)
      break;
  }
  wait_for_previous();
  if (dealt && lane == 0 && atomicAdd(params.counters + 1, 1) == clusters - 1)
    params.counters[0] = params.counters[1] = 0; // everyone has drawn their last
}

// The same in the cluster's other blocks, by one thread: tells what the first block's warp has found.
inline __device__ void deal_sent(const Places &at) {
  const uint32_t first_done = of_block(at.done, 0);
  for (int n = 0;; ++n) {
    const int slot = n & 1;
    barrier_expect(at.sent + slot * 8, kBlockBytes);
    wait_for_blocks(at.sent + slot * 8, n / 2 & 1);
    const RowBlock b = read_block(at.mail + slot * kBlockBytes);
    barrier_wait(at.done + slot * 8, n / 2 & 1 ^ 1);
    write_block(at.block + slot * kBlockBytes, b);
    barrier_arrive(at.told + slot * 8);
    arrive_at(first_done + slot * 8); // the next one may be sent to this one's place
    if (b.tiles == 0)
      break;
  }
}

// Called by one warp: has the tiles fetched, a box a lane, in the order in which they are needed: K0, K1, V0, K2, V1, … Keys
// behind the end of the context stay what they are in shared memory, for no row sees them; values there become zeros.
// Every block of a cluster has its share of the boxes copied to all.
template <int kDim, int kCluster> __device__ void fetch_tiles(const HopperParams &params, const Places &at, int rank) {
  using Tiles = HopperTiles<kDim>;
  const AttentionParams &p = params.attention;
  const int lane = threadIdx.x % 32, box_tokens = min(p.page_size, kTile / kCluster);
  const int box_line = (lane * kCluster + rank) * box_tokens;
  int taken = 0, rests = 0; // rests: parities of the barriers at.rest
  auto take = [&]() {
    const int slot = taken & 1;
    barrier_wait(at.told + slot * 8, taken / 2 & 1);
    const RowBlock b = read_block(at.block + slot * kBlockBytes);
    barrier_arrive(at.done + slot * 8);
    ++taken;
    return b;
  };
  auto page_of = [&](const RowBlock &from, int tile) { // of this lane's box
    const int key = from.begin + tile * kTile + box_line;
    const bool there = from.tiles && box_line < kTile && key < from.context;
    return there ? p.page_table[from.seq * p.page_table_stride + (key >> p.page_shift)] : 0;
  };
  // The tile that is number `count` of all.
  auto fetch = [&](const RowBlock &from, int tile, int count, bool is_value, int page) {
    const int stage = count % kStages, use = count / kStages, which = (is_value ? kStages : 0) + stage;
    const int key0 = from.begin + tile * kTile, lines = min(from.context - key0, kTile);
    const bool short_values = is_value && lines < kTile;
    const uint32_t to = (is_value ? at.values : at.keys) + stage * Tiles::kTileBytes;
    const uint32_t barrier = short_values ? at.rest + stage * 8 : at.full + which * 8;
    if (lane == 0) {
      barrier_wait(at.empty + which * 8, use & 1 ^ 1); // in all blocks of the cluster
      barrier_expect(barrier, (lines + box_tokens - 1) / box_tokens * box_tokens * kDim * 2);
    }
    __syncwarp();
    if (box_line < lines) {
      const uint32_t box_to = to + box_line / 8 * Tiles::kGroupBytes;
      const int group = (((is_value ? p.kv_heads : 0) + from.kv_head) * p.page_size + (key0 + box_line & p.page_size - 1)) / 8;
      if constexpr (kCluster > 1)
        copy_box_to((1 << kCluster) - 1, box_to, &params.pages, 0, 0, 0, group, page, barrier, kEvictNormal);
      else
        copy_box(box_to, &params.pages, 0, 0, 0, group, page, barrier, kEvictNormal);
    }
    if (short_values) {
      barrier_wait(barrier, rests >> stage & 1);
      rests ^= 1 << stage;
      for (int line = lines + lane / 8; line < kTile; line += 4)
#pragma unroll
        for (int h = 0; h < Tiles::kHalves; ++h)
          asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(to + line / 8 * Tiles::kGroupBytes + h * Tiles::kHalfBytes +
                                                                     (line % 8 * 8 + lane % 8) * 16),
                       "r"(0)
                       : "memory");
      fence_async();
      __syncwarp();
      if (lane == 0)
        barrier_arrive(at.full + which * 8);
    }
  };
  RowBlock now = take();
  int here = page_of(now, 0), next = page_of(now, 1); // a tile ahead
  wait_for_previous();
  if (now.tiles)
    fetch(now, 0, 0, false, here);
  for (int count = 0; now.tiles;) {
    RowBlock then{};
    for (int tile = 0; tile < now.tiles; ++tile, ++count) {
      if (tile == max(now.tiles - 3, 0) && lane == 0) // late, for the even end of all, and early enough to be known in time
        barrier_arrive(at.asked);
      const bool values_first = now.tiles < 3; // what comes then is not known yet
      if (values_first)
        fetch(now, tile, count, true, here);
      int after;
      if (tile + 1 < now.tiles) {
        after = page_of(now, tile + 2);
        fetch(now, tile + 1, count + 1, false, next);
      } else {
        then = take();
        next = page_of(then, 0), after = page_of(then, 1);
        if (then.tiles)
          fetch(then, 0, count + 1, false, next);
      }
      if (!values_first)
        fetch(now, tile, count, true, here);
      here = next, next = after;
    }
    now = then;
  }
}

// Called by the warpgroup's last kQueryWarps warps: copies the queries of every row block, zeros for rows past the end.
template <typename T, int kDim> __device__ void fetch_queries(const AttentionParams &p, const Places &at) {
  using Tiles = HopperTiles<kDim>;
  for (int n = 0;; ++n) {
    const int slot = n & 1;
    barrier_wait(at.told + slot * 8, n / 2 & 1);
    const RowBlock b = read_block(at.block + slot * kBlockBytes);
    wait_for_previous();
    if (b.tiles == 0)
      return;
    for (int i = threadIdx.x % 128 - 64; i < kRows * Tiles::kChunks; i += kQueryWarps * 32) {
      const int r = i / Tiles::kChunks, chunk = i % Tiles::kChunks, row = min(b.row0 + r, b.rows - 1);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at.queries + slot * Tiles::kQueryBytes + query_chunk(r, chunk)),
                   "l"(static_cast<const T *>(p.q) + (b.start + row / b.group) * p.ld_q +
                       static_cast<int64_t>(b.first_head + row % b.group) * kDim + chunk * 8),
                   "r"(b.row0 + r < b.rows ? 16 : 0)
                   : "memory");
    }
    commit_copies();
    wait_copies<0>();
    barrier_arrive(at.ready + slot * 8);
    barrier_arrive(at.done + slot * 8);
  }
}

} // namespace llmrt::cuda
