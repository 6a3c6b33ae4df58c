// What the warps of Hopper's prefill attention (attention_hopper.cu) have in common: its parameters, what lies where in shared memory,
// and the row blocks there, which one warp writes and the others read.
#pragma once

#include "kernels/cuda/attention_deal.cuh"
#include "kernels/cuda/cluster.cuh"

#include <cuda.h>

namespace llmrt::cuda {

constexpr int kRows = 128, kTile = 128; // rows of a block, keys of a tile
constexpr int kStages = 2;              // tiles of keys, and of values, that are there or on their way
constexpr int kBlockBytes = sizeof(RowBlock);

struct HopperParams {
  AttentionParams attention;
  CUtensorMap pages; // [pages][2 · kv_heads (keys, values) · page_size / 8][head_dim / 64][8 tokens][64]
  int seqs, max_group;
  int numbers;   // row blocks, or pairs of them, have numbers below this
  int *counters; // numbers that were drawn, clusters that have drawn their last; zero between calls
};

// Places in shared memory. At `done` and `ready` every thread arrives for what it has read or copied itself: where a warp surely is
// together, the compiler leaves nothing of __syncwarp() that racecheck could see before one lane's arrival for all.
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

// Sizes in shared memory: of two tiles of queries, and kStages each of keys and values.
template <int kDim> struct HopperTiles {
  static constexpr int kTileBytes = kTile * kDim * 2, kQueryBytes = kRows * kDim * 2;
  // Tiles of keys and values: for eight tokens, 1024 swizzled bytes of each 64 columns.
  static constexpr int kHalves = kDim / 64, kHalfBytes = 1024, kGroupBytes = kHalves * kHalfBytes;
  static constexpr size_t kBytes = 2 * kQueryBytes + 2 * kStages * kTileBytes + 1024; // aligned by hand
  static constexpr int kChunks = kDim / 8;                                            // of 16 bytes, in a row
};

// Where a chunk of a row of queries lies, and of the output that takes their place.
__device__ __forceinline__ uint32_t query_chunk(int row, int chunk) {
  return chunk / 8 * (kRows * 128) + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

} // namespace llmrt::cuda
