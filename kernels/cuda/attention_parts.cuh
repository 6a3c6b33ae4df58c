// What warps and thread blocks have computed of a sequence and KV head when their stretch of the line ends, and how such parts
// become results: those of a block meet in shared memory, those of several blocks in the workspace.
#pragma once

#include "kernels/cuda/attention_line.cuh"

namespace llmrt::cuda {

constexpr float kLowest = -1e30f; // in front of all scores; unlike infinity, it can be subtracted from itself

// Of up to kTiles · 8 query rows of a sequence and KV head.
template <typename T, int kDim, int kTiles, int kWarps> struct AttentionParts {
  static constexpr int kRows = kTiles * 8, kSlices = kDim / 16;
  static constexpr int kChunks = kDim / 64; // of 8 columns, that a lane has of a row of results

  // An unfinished result: sums, maxima and denominators of the rows.
  struct Part {
    float o[kRows][kDim + 4]; // padded: the lanes of a warp write to all banks
    float m[kRows], l[kRows];
  };

  // This lane's column i of row `quad * 2 + e` of a tile of results: column lane / 4 * 8 * kChunks + i of the row.
  static __device__ __forceinline__ float result(const float (&o)[kSlices][4], int i, int e) {
    return o[i % kSlices][i / kSlices * 2 + e];
  }
  static __device__ __forceinline__ T *out_at(const AttentionParams &p, const LinePlace &at, const HeadGroup &group, int r) {
    return static_cast<T *>(p.out) + (at.start + group.token(r)) * p.ld_out + (at.kv_head * group.size + group.head(r)) * kDim;
  }

  // A result that one warp has whole.
  static __device__ __forceinline__ void write(const AttentionParams &p, const float (&o)[kTiles][kSlices][4],
                                               const float (&l)[kTiles][2], const LinePlace &at, const HeadGroup &group) {
    const int lane = threadIdx.x % 32, rows = (at.end - at.past) * group.size;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int r = t * 8 + lane % 4 * 2 + e;
        if (r >= rows)
          continue;
        const float scale = 1.0f / l[t][e];
        T *to = out_at(p, at, group, r) + lane / 4 * 8 * kChunks;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
          uint32_t v[4];
#pragma unroll
          for (int i = 0; i < 4; ++i)
            v[i] = pack<T>(result(o[t], c * 8 + i * 2, e) * scale, result(o[t], c * 8 + i * 2 + 1, e) * scale);
          *reinterpret_cast<uint4 *>(to + c * 8) = make_uint4(v[0], v[1], v[2], v[3]);
        }
      }
  }

  static __device__ __forceinline__ void store(Part &part, const float (&o)[kTiles][kSlices][4], const float (&m)[kTiles][2],
                                               const float (&l)[kTiles][2]) {
    const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4 * 2;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int i = 0; i < kChunks * 8; i += 4)
          *reinterpret_cast<float4 *>(&part.o[t * 8 + pair + e][row * 8 * kChunks + i]) =
              make_float4(result(o[t], i, e), result(o[t], i + 1, e), result(o[t], i + 2, e), result(o[t], i + 3, e));
      if (row < 2)
        part.m[t * 8 + pair + row] = row ? m[t][1] : m[t][0], part.l[t * 8 + pair + row] = row ? l[t][1] : l[t][0];
    }
  }

  // A lane's columns of a merged row, of which a warp has several: four, and the four kLanes · 4 further, and so on.
  static constexpr int kAtOnce = 4, kLanes = 32 / kAtOnce, kFours = kDim / kLanes / 4;
  struct Sum {
    float4 o[kFours] = {};
    float2 ml = {kLowest, 0}; // maximum and denominator
    __device__ __forceinline__ void add(const Sum &x) {
      const float top = fmaxf(ml.x, x.ml.x), keep = exp2_of(ml.x - top), take = exp2_of(x.ml.x - top);
#pragma unroll
      for (int e = 0; e < kFours; ++e) {
        o[e].x = o[e].x * keep + x.o[e].x * take, o[e].y = o[e].y * keep + x.o[e].y * take;
        o[e].z = o[e].z * keep + x.o[e].z * take, o[e].w = o[e].w * keep + x.o[e].w * take;
      }
      ml = make_float2(top, ml.y * keep + x.ml.y * take);
    }
    __device__ __forceinline__ void write(T *row) const {
      const float scale = __fdividef(1.0f, ml.y);
      uint2 *to = reinterpret_cast<uint2 *>(row) + threadIdx.x % kLanes;
#pragma unroll
      for (int e = 0; e < kFours; ++e)
        to[e * kLanes] = make_uint2(pack<T>(o[e].x * scale, o[e].y * scale), pack<T>(o[e].z * scale, o[e].w * scale));
    }
  };
  // Merged rows of a block in the workspace: of the sequence and head that it is not the first to work on, and of the one
  // that it is not the last to.
  static constexpr int kPartFloats = kRows * (kDim + 4);
  static __device__ __forceinline__ float *partial(const AttentionParams &p, int block, bool begins, int r) {
    return p.partial + (block * 2 + begins) * kPartFloats + r * (kDim + 4);
  }

  // Merges the parts of the sequences and KV heads that several warps worked on; a warp takes kAtOnce rows at a time. pairs[i]
  // says whose part i is, sequence * kv_heads + KV head, or -1 for none, and part_of(i) where it lies.
  template <typename F>
  static __device__ __forceinline__ void merge(const AttentionParams &p, const WorkLine<kRows, kWarps> &line,
                                               const int (&pairs)[kWarps * 2], F &&part_of, const HeadGroup &group, const LineShare &work,
                                               uint32_t *counters) {
    constexpr int kTurns = kRows / kAtOnce;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, block = blockIdx.x;
    const int in_turn = lane / kLanes, column = lane % kLanes * 4;
    const int id = lane < kWarps * 2 ? pairs[lane] : -1;
    const uint32_t valid = __ballot_sync(0xffffffffu, id >= 0), below = valid & ((1u << lane) - 1);
    const int before = __shfl_sync(0xffffffffu, id, below ? 31 - __clz(below) : 0);
    const uint32_t begins = __ballot_sync(0xffffffffu, id >= 0 && !(below && before == id));
    const int rank = __popc(begins & ((2u << lane) - 1)) - 1; // which of them a part belongs to
    auto locate = [&](int whose, LinePlace &at) {
      line.measure(p, group, whose / p.kv_heads, at);
      at.kv_head = whose % p.kv_heads;
    };

    int waiting = 0, first = 0, last = 0, what = 0; // lane i: of the i-th rows that other blocks have worked on
#pragma unroll 1
    for (int i = warp; i < __popc(begins) * kTurns; i += kWarps) {
      uint32_t mask = __ballot_sync(0xffffffffu, id >= 0 && rank == i / kTurns);
      const int whose = __shfl_sync(0xffffffffu, id, __ffs(mask) - 1), r = i % kTurns * kAtOnce + in_turn;
      LinePlace at;
      locate(whose, at);
      const int rows = (at.end - at.past) * group.size;
      if (i % kTurns * kAtOnce >= rows)
        continue;
      Sum sum, next;
      auto read = [&]() { // the next of the parts
        const int slot = __ffs(mask) - 1;
        const Part &part = part_of(slot);
#pragma unroll
        for (int e = 0; e < kFours; ++e)
          next.o[e] = *reinterpret_cast<const float4 *>(&part.o[r][column + e * kLanes * 4]);
        next.ml = make_float2(part.m[r], part.l[r]);
        mask &= mask - 1;
      };
      read();
#pragma unroll 1
      for (bool more = true; more;) {
        const Sum x = next;
        more = mask != 0;
        if (more)
          read();
        sum.add(x);
      }
      const int begin = line.prefix[at.seq] + at.kv_head * at.steps;
      const int first_block = work.whole ? block : work.owner(begin);
      const int last_block = work.whole ? block : work.owner(begin + at.steps - 1);
      if (first_block == last_block) {
        if (r < rows)
          sum.write(out_at(p, at, group, r));
        continue;
      }
      float *to = partial(p, block, block == first_block, r);
#pragma unroll
      for (int e = 0; e < kFours; ++e)
        __stcg(reinterpret_cast<float4 *>(to + column + e * kLanes * 4), sum.o[e]);
      if (column == 0)
        __stcg(reinterpret_cast<float2 *>(to + kDim), sum.ml);
      if (lane == waiting)
        first = first_block, last = last_block, what = whose * kTurns + i % kTurns;
      ++waiting;
    }
    if (waiting == 0)
      return;

    // The last block to arrive merges, in order, and leaves the counter as it was.
    __syncwarp();
    uint32_t arrived = 0;
    if (lane < waiting)
      asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;"
                   : "=r"(arrived)
                   : "l"(&counters[first * kTurns + what % kTurns])
                   : "memory");
    __syncwarp();
    uint32_t mask = __ballot_sync(0xffffffffu, lane < waiting && arrived == static_cast<uint32_t>(last - first));
#pragma unroll 1
    for (; mask; mask &= mask - 1) {
      const int i = __ffs(mask) - 1, from = __shfl_sync(0xffffffffu, first, i), to = __shfl_sync(0xffffffffu, last, i);
      const int which = __shfl_sync(0xffffffffu, what, i), r = which % kTurns * kAtOnce + in_turn;
      if (lane == 0)
        counters[from * kTurns + which % kTurns] = 0;
      Sum sum;
#pragma unroll 2
      for (int b = from; b <= to; ++b) {
        const float *part = partial(p, b, b == from, r);
        Sum x;
#pragma unroll
        for (int e = 0; e < kFours; ++e)
          x.o[e] = __ldcg(reinterpret_cast<const float4 *>(part + column + e * kLanes * 4));
        x.ml = __ldcg(reinterpret_cast<const float2 *>(part + kDim));
        sum.add(x);
      }
      LinePlace at;
      locate(which / kTurns, at);
      if (r < (at.end - at.past) * group.size)
        sum.write(out_at(p, at, group, r));
    }
  }
};

} // namespace llmrt::cuda
