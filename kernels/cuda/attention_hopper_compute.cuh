// The warpgroups of Hopper's prefill attention (attention_hopper.cu) that compute: scores, softmax and weighted values of 64 rows each,
// tile by tile, and the rows' way out.
#pragma once

#include "kernels/cuda/attention_hopper_tiles.cuh"
#include "kernels/cuda/hopper.cuh"

namespace llmrt::cuda {

// A warpgroup's turn with the tensor cores: it waits for its own, and gives the other's.
__device__ __forceinline__ void wait_turn(int warpgroup) { asm volatile("bar.sync %0, 256;" ::"r"(3 + warpgroup) : "memory"); }
__device__ __forceinline__ void give_turn(int warpgroup) { asm volatile("bar.arrive %0, 256;" ::"r"(3 + warpgroup) : "memory"); }

// Called by each of the warpgroups that compute, 0 and 1.
template <typename T, int kDim, int kCluster>
__device__ void compute(const AttentionParams &p, int warpgroup, const Places &at) {
  using Tiles = HopperTiles<kDim>;
  constexpr int kScores = kTile / 2, kOut = kDim / 2; // registers of 64 rows
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
                   : "r"(at.queries + slot * Tiles::kQueryBytes + query_chunk(tile_row + lane % 16, d * 2 + lane / 16))
                   : "memory");
    return true;
  };
  auto scores = [&](int count) {
    const uint64_t k = tile_descriptor(at.keys + count % kStages * Tiles::kTileBytes, 0, Tiles::kGroupBytes);
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d)
      wgmma_rs<T>(s, queries[d], k + (d / 4 * Tiles::kHalfBytes + d % 4 * 32) / 16, d > 0);
    wgmma_commit();
  };
  auto add_values = [&](int count) {
    const uint64_t v = tile_descriptor(at.values + count % kStages * Tiles::kTileBytes, Tiles::kHalfBytes, Tiles::kGroupBytes);
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k)
      wgmma_rs<T>(o, weights[k], v + k * 2 * Tiles::kGroupBytes / 16);
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
    const uint32_t tile = at.queries + slot * Tiles::kQueryBytes;
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
    for (int r = tile_row + lane / Tiles::kChunks; r < tile_row + 16; r += 32 / Tiles::kChunks) {
      const int row = b.row0 + r, chunk = lane % Tiles::kChunks;
      const uint4 value = load_shared(tile + query_chunk(r, chunk));
      if (row < b.rows)
        __stcg(reinterpret_cast<uint4 *>(static_cast<T *>(p.out) + (b.start + row / b.group) * p.ld_out +
                                         static_cast<int64_t>(b.first_head + row % b.group) * kDim + chunk * 8),
               value);
    }
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

} // namespace llmrt::cuda
