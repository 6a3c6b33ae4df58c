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
#include "kernels/cuda/attention_deal.cuh"
#include "kernels/cuda/cluster.cuh"
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
constexpr int64_t kPairRows = 2048; // the longest sequence's, from which on blocks are paired: half a pair may have no rows
constexpr int kThreads = 384; // a warpgroup that fetches and two that compute
constexpr int kQueryWarps = 2, kBlockBytes = sizeof(RowBlock);

struct HopperParams {
  AttentionParams attention;
  CUtensorMap pages; // [pages][2 · kv_heads (keys, values) · page_size / 8][head_dim / 64][8 tokens][64]
  int seqs, max_group;
  int numbers;   // row blocks, or pairs of them, have numbers below this
  int *counters; // numbers that were drawn, clusters that have drawn their last; zero between calls
};

// Places in shared memory.
struct Places {
  uint32_t queries, keys, values; // tiles
  uint32_t full, empty;           // barriers of tiles: keys, values
  uint32_t rest;                  // barriers of values that need zeros behind them
  uint32_t block, told, done;     // row blocks, two in turn; barriers: what they are is there, all are done with it
  uint32_t ready, asked;          // barriers: the row blocks' queries are there; one more row block will be needed soon
  uint32_t mail, sent;            // row blocks that another block of the cluster has found, two in turn; barriers: they have come
};

static_assert(kBlockBytes == 48);
__device__ __forceinline__ void write_block(uint32_t to, const RowBlock &b) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(b.start), "r"(b.first_head), "r"(b.group), "r"(b.rows) : "memory");
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to + 16), "r"(b.row0), "r"(b.past), "r"(b.begin), "r"(b.tiles) : "memory");
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to + 32), "r"(b.seq), "r"(b.kv_head), "r"(b.context), "r"(b.none) : "memory");
}
__device__ __forceinline__ void send_block(uint32_t to, const RowBlock &b, uint32_t barrier) {
  const auto four = [&](int at, int x, int y, int z, int w) {
    send(to + at, make_float4(__int_as_float(x), __int_as_float(y), __int_as_float(z), __int_as_float(w)), barrier);
  };
  four(0, b.start, b.first_head, b.group, b.rows);
  four(16, b.row0, b.past, b.begin, b.tiles);
  four(32, b.seq, b.kv_head, b.context, b.none);
}
__device__ __forceinline__ RowBlock read_block(uint32_t from) {
  RowBlock b;
  const auto four = [&](int at, int &x, int &y, int &z, int &w) {
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(from + at) : "memory");
  };
  four(0, b.start, b.first_head, b.group, b.rows);
  four(16, b.row0, b.past, b.begin, b.tiles);
  four(32, b.seq, b.kv_head, b.context, b.none);
  return b;
}

// A warpgroup's turn with the tensor cores: it waits for its own, and gives the other's.
__device__ __forceinline__ void wait_turn(int warpgroup) { asm volatile("bar.sync %0, 256;" ::"r"(3 + warpgroup) : "memory"); }
__device__ __forceinline__ void give_turn(int warpgroup) { asm volatile("bar.arrive %0, 256;" ::"r"(3 + warpgroup) : "memory"); }

template <typename T, int kDim, int kCluster> struct Hopper {
  static constexpr int kTileBytes = kTile * kDim * 2, kQueryBytes = kRows * kDim * 2;
  // Tiles of keys and values: for eight tokens, 1024 swizzled bytes of each 64 columns.
  static constexpr int kHalves = kDim / 64, kHalfBytes = 1024, kGroupBytes = kHalves * kHalfBytes;
  static constexpr size_t kBytes = 2 * kQueryBytes + 2 * kStages * kTileBytes + 1024; // aligned by hand
  static constexpr int kScores = kTile / 2, kOut = kDim / 2; // registers of 64 rows

  static constexpr int kChunks = kDim / 8; // of 16 bytes, in a row
  using Dealt = RowBlocks<kRows * kCluster, kTile>;

  // Where a chunk of a row of queries lies, and of the output that takes their place.
  static __device__ __forceinline__ uint32_t query_chunk(int row, int chunk) {
    return chunk / 8 * (kRows * 128) + row * 128 + (chunk % 8 ^ row % 8) * 16;
  }

  // Called by one warp: finds row blocks when more are asked for, and tells the others, of all the cluster.
  static __device__ void deal(const HopperParams &params, const Places &at) {
    const AttentionParams &p = params.attention;
    const int lane = threadIdx.x % 32;
    const int clusters = static_cast<int>(gridDim.x) / kCluster;
    const bool dealt = clusters < params.numbers; // else a cluster has one number
    Dealt row_blocks(p, params.seqs, params.max_group);
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
  static __device__ void deal_sent(const Places &at) {
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
  static __device__ void fetch_tiles(const HopperParams &params, const Places &at, int rank) {
    const AttentionParams &p = params.attention;
    const int lane = threadIdx.x % 32, box_tokens = min(p.page_size, kTile / kCluster);
    const int box_line = (lane * kCluster + rank) * box_tokens;
    int taken = 0, rests = 0; // rests: parities of the barriers at.rest
    auto take = [&]() {
      const int slot = taken & 1;
      barrier_wait(at.told + slot * 8, taken / 2 & 1);
      const RowBlock b = read_block(at.block + slot * kBlockBytes);
      __syncwarp();
      if (lane == 0)
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
      const uint32_t to = (is_value ? at.values : at.keys) + stage * kTileBytes;
      const uint32_t barrier = short_values ? at.rest + stage * 8 : at.full + which * 8;
      if (lane == 0) {
        barrier_wait(at.empty + which * 8, use & 1 ^ 1); // in all blocks of the cluster
        barrier_expect(barrier, (lines + box_tokens - 1) / box_tokens * box_tokens * kDim * 2);
      }
      __syncwarp();
      if (box_line < lines) {
        const uint32_t box_to = to + box_line / 8 * kGroupBytes;
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
          for (int h = 0; h < kHalves; ++h)
            asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(to + line / 8 * kGroupBytes + h * kHalfBytes +
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

  static __device__ void fetch_queries(const AttentionParams &p, const Places &at) {
    for (int n = 0;; ++n) {
      const int slot = n & 1;
      barrier_wait(at.told + slot * 8, n / 2 & 1);
      const RowBlock b = read_block(at.block + slot * kBlockBytes);
      wait_for_previous();
      if (b.tiles == 0)
        return;
      for (int i = threadIdx.x % 128 - 64; i < kRows * kChunks; i += kQueryWarps * 32) {
        const int r = i / kChunks, chunk = i % kChunks, row = min(b.row0 + r, b.rows - 1);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at.queries + slot * kQueryBytes + query_chunk(r, chunk)),
                     "l"(static_cast<const T *>(p.q) + (b.start + row / b.group) * p.ld_q +
                         static_cast<int64_t>(b.first_head + row % b.group) * kDim + chunk * 8),
                     "r"(b.row0 + r < b.rows ? 16 : 0)
                     : "memory");
      }
      commit_copies();
      wait_copies<0>();
      barrier_arrive(at.ready + slot * 8); // every thread for its own copies, as racecheck wants it
      __syncwarp();
      if (threadIdx.x % 32 == 0)
        barrier_arrive(at.done + slot * 8);
    }
  }

  static __device__ void compute(const AttentionParams &p, int warpgroup, const Places &at) {
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, tile_row = warpgroup * 64 + warp * 16;
    const float scale = p.softcap > 0 ? kLog2e : p.scale * kLog2e, inner = p.softcap > 0 ? p.scale / p.softcap : 0;
    float o[kOut], s[kScores], m[2], l[2], factor[2];
    uint32_t queries[kDim / 16][4], weights[kTile / 16][4];
#pragma unroll
    for (int i = 0; i < kOut; ++i)
      o[i] = 0;

    // The row block whose scores are next: its first key not yet seen, tiles from there, positions of this thread's two rows
    // (rows past the end see nothing). Every key of a tile is seen by every row where it lies in [seen_from, seen_to).
    int blocks = 0, key0, left, position[2], seen_from, seen_to;
    auto enter = [&]() {
      const int slot = blocks & 1;
      barrier_wait(at.told + slot * 8, blocks / 2 & 1);
      const RowBlock b = read_block(at.block + slot * kBlockBytes);
      if (b.tiles == 0)
        return false;
      const int row0 = b.row0 + warpgroup * 64, row = row0 + warp * 16 + lane / 4;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        position[i] = row + i * 8 < b.rows ? b.past + (row + i * 8) / b.group : -1;
        m[i] = -INFINITY, l[i] = 0;
      }
      seen_to = row0 + 63 < b.rows ? b.past + row0 / b.group + 1 : 0;
      seen_from = p.window ? b.past + min(row0 + 63, b.rows - 1) / b.group - p.window + 1 : 0;
      key0 = b.begin, left = b.tiles;
      barrier_wait(at.ready + slot * 8, blocks / 2 & 1);
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(queries[d][0]), "=r"(queries[d][1]), "=r"(queries[d][2]), "=r"(queries[d][3])
                     : "r"(at.queries + slot * kQueryBytes + query_chunk(tile_row + lane % 16, d * 2 + lane / 16))
                     : "memory");
      return true;
    };
    auto scores = [&](int count) {
      const uint64_t k = tile_descriptor(at.keys + count % kStages * kTileBytes, 0, kGroupBytes);
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d)
        wgmma_rs<T>(s, queries[d], k + (d / 4 * kHalfBytes + d % 4 * 32) / 16, d > 0);
      wgmma_commit();
    };
    auto add_values = [&](int count) {
      const uint64_t v = tile_descriptor(at.values + count % kStages * kTileBytes, kHalfBytes, kGroupBytes);
#pragma unroll
      for (int k = 0; k < kTile / 16; ++k)
        wgmma_rs<T>(o, weights[k], v + k * 2 * kGroupBytes / 16);
      wgmma_commit();
    };
    // Scores to weights in base 2; factor is what sums so far shrink by.
    auto softmax = [&]() {
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
    const uint32_t empty_there = kCluster > 1 ? of_block(at.empty, lane < kCluster ? lane : 0) : 0; // a lane for each block
    auto release = [&](int which) {
      if constexpr (kCluster > 1) {
        if (lane < kCluster)
          arrive_at(empty_there + which * 8);
      } else if (lane == 0) {
        barrier_arrive(at.empty + which * 8);
      }
    };
    // The rows that are complete: through the place of their queries, each warp its own, to the output in whole lines.
    auto write = [&](int n, const float (&sums)[2]) {
      const int slot = n & 1;
      const uint32_t tile = at.queries + slot * kQueryBytes;
      float inverse[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float sum = sums[i];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        inverse[i] = 1.0f / sum;
      }
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d) {
        const float *from = o + d * 8;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         tile + query_chunk(tile_row + lane % 16, d * 2 + lane / 16)),
                     "r"(pack<T>(from[0] * inverse[0], from[1] * inverse[0])), "r"(pack<T>(from[2] * inverse[1], from[3] * inverse[1])),
                     "r"(pack<T>(from[4] * inverse[0], from[5] * inverse[0])), "r"(pack<T>(from[6] * inverse[1], from[7] * inverse[1]))
                     : "memory");
      }
      __syncwarp();
      const RowBlock b = read_block(at.block + slot * kBlockBytes);
#pragma unroll 2
      for (int r = tile_row + lane / kChunks; r < tile_row + 16; r += 32 / kChunks) {
        const int row = b.row0 + r, chunk = lane % kChunks;
        uint4 value;
        asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(tile + query_chunk(r, chunk))
                     : "memory");
        if (row < b.rows)
          __stcg(reinterpret_cast<uint4 *>(static_cast<T *>(p.out) + (b.start + row / b.group) * p.ld_out +
                                           static_cast<int64_t>(b.first_head + row % b.group) * kDim + chunk * 8),
                 value);
      }
      __syncwarp();
      if (lane == 0)
        barrier_arrive(at.done + slot * 8);
    };

    wait_for_previous();
    if (!enter())
      return;
    barrier_wait(at.full, 0);
    wgmma_fence();
    scores(0);
    wgmma_wait<0>();
    hold(s);
    release(0);
    softmax();
    pack_weights();
    if (warpgroup == 1)
      give_turn(0);
    int count = 0; // tiles whose values have been added, of all row blocks
    for (;; ++count) {
      const int stage = count % kStages, next = (count + 1) % kStages;
      const bool last = left == 1; // of its rows
      const float sums[2] = {l[0], l[1]};
      if (last) {
        ++blocks;
        if (!enter())
          break;
      } else {
        key0 += kTile, --left;
      }
      barrier_wait(at.full + next * 8, (count + 1) / kStages & 1);
      barrier_wait(at.full + (kStages + stage) * 8, count / kStages & 1);
      wait_turn(warpgroup);
      wgmma_fence();
      scores(count + 1);
      add_values(count);
      give_turn(1 - warpgroup);
      wgmma_wait<1>();
      hold(s);
      release(next);
      softmax();
      // The assembler moves a softmax behind the wait, where no product runs beside it, unless something in front depends on it:
      // an arrival on a condition that never holds, for sums of powers are not negative.
      if (l[0] + l[1] < 0)
        barrier_arrive(at.empty);
      wgmma_wait<0>();
      hold(o);
      release(kStages + stage);
      if (last) {
        write(blocks - 1, sums);
#pragma unroll
        for (int i = 0; i < kOut; ++i)
          o[i] = 0;
      }
#pragma unroll
      for (int i = 0; i < kOut; ++i)
        o[i] *= factor[i / 2 % 2];
      pack_weights();
    }
    barrier_wait(at.full + (kStages + count % kStages) * 8, count / kStages & 1);
    wait_turn(warpgroup);
    wgmma_fence();
    add_values(count);
    if (warpgroup == 0)
      give_turn(1);
    wgmma_wait<0>();
    hold(o);
    write(blocks - 1, l);
  }

  static __device__ void run(const HopperParams &params) {
    extern __shared__ char raw[];
    __shared__ uint64_t barriers[5 * kStages + 9];
    __shared__ __align__(16) RowBlock blocks[4];
    const int rank = kCluster > 1 ? static_cast<int>(cluster_rank()) : 0;
    Places at;
    at.queries = (shared_address(raw) + 1023) / 1024 * 1024; // like all places, the same in all blocks of a cluster
    at.keys = at.queries + 2 * kQueryBytes, at.values = at.keys + kStages * kTileBytes;
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
        barrier_init(at.done + i * 8, 1 + kQueryWarps + 8 + (rank == 0 ? kCluster - 1 : 0));
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
        fetch_tiles(params, at, rank);
      else if (warp == 1 && rank == 0)
        deal(params, at);
      else if (warp == 1 && threadIdx.x % 32 == 0)
        deal_sent(at);
      else if (warp > 1)
        fetch_queries(params.attention, at);
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
      compute(params.attention, warp / 4 - 1, at);
    }
    if constexpr (kCluster > 1) {
      __syncwarp();
      cluster_arrive(), cluster_wait(); // nobody leaves while others still tell its barriers
    }
  }
};

template <typename T, int kDim, int kCluster>
__global__ void __launch_bounds__(kThreads, 1) hopper_kernel(const __grid_constant__ HopperParams p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  let_next_start();
  Hopper<T, kDim, kCluster>::run(p);
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
                 Hopper<T, kDim, kCluster>::kBytes, kCluster, stream, params);
}
template <typename T, int kDim> void run(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  if (static_cast<int64_t>(a.max_query) * a.max_group >= kPairRows)
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
