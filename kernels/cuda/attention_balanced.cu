// Decode attention of whole batches in one round: every warp of the device streams an equal share of all keys of the step.
//
// The work of a step is a line of blocks of 16 keys: sequence by sequence, KV head by KV head. Each thread block takes an
// equal stretch of that line, each of its warps an equal part of the stretch, so that ragged lengths leave nobody idle and
// no bound of the context matters; where sequences are so alike that blocks of whole ones are as good, blocks end where they
// do. A warp has a ring of shared memory of its own that bulk copies fill and that runs on over the borders of sequences;
// blocks of keys that earlier steps wrote are on their way before the previous kernel has ended. Keys and value columns are
// the M side of the tensor-core tiles and the query heads of the KV head the N side: a group of up to eight is one tile.
// What warps computed of one sequence and head meets in shared memory; what thread blocks did meets in the workspace, where
// the last one to arrive merges all parts in order.
//
// Short steps last about 10 µs, so latency counts: nothing in the loop waits for a load that it has only just asked for, and
// code that runs once is small, for instructions come from memory too.
#include "kernels/cuda/attention_parts.cuh"
#include "kernels/cuda/hopper.cuh"

namespace llmrt::cuda {

namespace {

__device__ __forceinline__ uint32_t transposed(uint32_t v) {
  uint32_t t;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(v));
  return t;
}

// kTiles · 8 query rows of a sequence and KV head at most; kStages steps in flight a warp.
template <typename T, int kDim, int kTiles, int kWarps, int kStages> struct Balanced {
  using Parts = AttentionParts<T, kDim, kTiles, kWarps>;
  using Part = typename Parts::Part;
  static constexpr int kKeys = kLineKeys, kRows = Parts::kRows, kSlices = Parts::kSlices, kChunks = Parts::kChunks;
  // Steps on their way before the previous kernel has ended; the query, asked for next, arrives behind them.
  static constexpr int kEarly = kStages / 2;

  using Tile = T[kKeys][kDim]; // keys or values, as they lie in a page
  using Ring = Tile[kStages][2];
  struct Shared {
    Ring ring[kWarps]; // in the end, each warp's last part
    Part first[kWarps];
    T query[kWarps][kRows][kDim];   // of the sequence and KV head that comes next
    uint64_t full[kWarps][kStages]; // barriers: a step's keys and values are there
    int pair[kWarps * 2]; // whose part: sequence * kv_heads + KV head, or -1; of a warp's first part, then of its last
    WorkLine<kRows, kWarps> line;
  };
  static_assert(sizeof(Ring) >= sizeof(Part) && kWarps <= 16);
  static constexpr size_t kBytes = sizeof(Shared);

  // Starts the copy of the query rows of a sequence and KV head; zeros for rows past the end.
  static __device__ __forceinline__ void fetch_query(const AttentionParams &p, T (&to)[kRows][kDim], const HeadGroup &group,
                                                     const LinePlace &at) {
    constexpr int kEach = kDim / 8; // copies of a row
    const int lane = threadIdx.x % 32, rows = (at.end - at.past) * group.size;
    const T *from = static_cast<const T *>(p.q) + at.kv_head * group.size * kDim;
#pragma unroll
    for (int i = 0; i < kRows * kEach / 32; ++i) {
      const int r = (i * 32 + lane) / kEach, column = lane % kEach * 8;
      const T *row = r < rows ? from + (at.start + group.token(r)) * p.ld_q + group.head(r) * kDim + column : from;
      copy_async<16>(&to[r][column], row, r < rows);
    }
    commit_copies();
  }

  static __device__ void run(const AttentionParams &p, int S, uint32_t *counters) {
    extern __shared__ __align__(128) char raw[];
    Shared &shared = *reinterpret_cast<Shared *>(raw);
    let_next_start();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
    const HeadGroup group(p.q_heads / p.kv_heads);
    const uint32_t full = shared_address(shared.full[warp]);
    if (lane < kStages)
      barrier_init(full + lane * 8, 1);
    if (lane < 2)
      shared.pair[warp * 2 + lane] = -1;
    fence_barriers();
    WorkLine<kRows, kWarps> &line = shared.line;
    const LineShare work = line.share(p, S, line.plan(p, group, S));
    if (work.first == work.last) {
      wait_for_previous();
      return;
    }
    const int first = work.first + border(work.last - work.first, warp);
    const int mine = work.first + border(work.last - work.first, warp + 1) - first;

    // Where the keys of 32 steps of this warp are, one a lane: of those that are being copied, and of the 32 behind them.
    Ring &ring = shared.ring[warp];
    int64_t from = 0, ahead = 0;
    int issued = 0;
    auto look = [&](int i, LinePlace &at) -> int64_t {
      line.seek(p, group, S, first + i, at);
      const int key0 = at.begin + at.step * kKeys, in_sequence = page_of(p, key0);
      const int64_t page = p.page_table[at.seq * p.page_table_stride + in_sequence];
      return page * p.page_stride + (at.kv_head * p.page_size + key0 - in_sequence * p.page_size) * kDim;
    };
    // Starts the copies of the keys of a step and of their values; of keys behind the last one too, whatever lies there.
    auto issue = [&](int stage) {
      if (issued % 32 == 0 && issued > 0)
        from = ahead;
      const T *keys = static_cast<const T *>(p.pool) + __shfl_sync(0xffffffffu, from, issued % 32);
      if (lane == 0) {
        const uint32_t barrier = full + stage * 8;
        barrier_expect(barrier, sizeof(Tile) * 2);
        copy_bulk(shared_address(ring[stage][0]), keys, sizeof(Tile), barrier);
        copy_bulk(shared_address(ring[stage][1]), keys + p.kv_heads * p.page_size * kDim, sizeof(Tile), barrier);
      }
      if (issued % 32 == 16 && issued + 16 + lane < mine) {
        LinePlace at;
        ahead = look(issued + 16 + lane, at);
      }
      ++issued;
    };
    LinePlace at = {};
    bool old = false; // earlier steps wrote them
    if (lane < mine) {
      from = look(lane, at);
      old = at.begin + at.step * kKeys + kKeys <= at.past;
    }
    const int early = __ffs(~__ballot_sync(0xffffffffu, old)) - 1; // -1: all 32
#pragma unroll 1
    while (issued < kEarly && issued < mine && (early < 0 || issued < early))
      issue(issued);
    if (mine > 0)
      line.seek(p, group, S, first, at);
    wait_for_previous();
    T(&query)[kRows][kDim] = shared.query[warp];
    if (mine > 0)
      fetch_query(p, query, group, at);
#pragma unroll 1
    while (issued < kStages && issued < mine)
      issue(issued);

    const float scale = p.scale * kLog2e;
    float o[kTiles][kSlices][4], m[kTiles][2], l[kTiles][2];
    uint4 q[kTiles][kDim / 32];
    int position[kTiles][2], begun = 0;
    bool fresh = true;
    for (int i = 0, stage = 0, parity = 0; i < mine; ++i) {
      if (fresh) { // this lane's query rows are the columns of its accumulators; rows past the end are zero and see all
        const int rows = (at.end - at.past) * group.size;
        begun = at.step, fresh = false;
        wait_copies<0>();
        __syncwarp();
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
#pragma unroll
          for (int d = 0; d < kDim / 32; ++d)
            q[t][d] = *reinterpret_cast<const uint4 *>(&query[t * 8 + row][d * 32 + quad * 8]);
#pragma unroll
          for (int d = 0; d < kSlices; ++d)
#pragma unroll
            for (int e = 0; e < 4; ++e)
              o[t][d][e] = 0;
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            m[t][e] = kLowest, l[t][e] = 0;
            position[t][e] = at.past + group.token(min(t * 8 + quad * 2 + e, rows - 1));
          }
        }
        __syncwarp();
        if (mine - i > at.steps - at.step) {
          LinePlace next = at;
          line.next_pair(p, group, next);
          fetch_query(p, query, group, next);
        }
      }
      barrier_wait(full + stage * 8, parity);
      const Tile &keys = ring[stage][0], &values = ring[stage][1];
      const int key0 = at.begin + at.step * kKeys;
      if (key0 + kKeys > at.end) { // whatever lies behind the last value, times a weight of zero, must be zero
        T *behind = ring[stage][1][at.end - key0];
        for (int e = lane * 8; e < (key0 + kKeys - at.end) * kDim; e += 256)
          *reinterpret_cast<uint4 *>(behind + e) = make_uint4(0, 0, 0, 0);
        fence_async(); // before the next copy to this place
        __syncwarp();
      }

      // Scores: 16 keys × the rows. A lane reads 16 bytes at once, the columns of two products, in the order in which it has
      // those of the query. So that no two lanes meet in a bank, odd rows read their columns in another order than even ones:
      // each product is made for either, and each row takes its own.
      float s[kTiles][4], products[2][2][kTiles][4] = {};
#pragma unroll
      for (int d = 0; d < kDim / 32; ++d) {
        const int column = (d ^ row % 2) * 32 + quad * 8;
        const uint4 k = load(keys, row, column), other = load(keys, row + 8, column);
        const uint32_t low[4] = {k.x, other.x, k.y, other.y}, high[4] = {k.z, other.z, k.w, other.w};
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
          for (int odd = 0; odd < 2; ++odd) {
            mma<T>(products[odd][0][t], low, q[t][d ^ odd].x, q[t][d ^ odd].y);
            mma<T>(products[odd][1][t], high, q[t][d ^ odd].z, q[t][d ^ odd].w);
          }
      }
      // Mask where the step reaches past what all rows see; online softmax, base 2.
      const bool mask = key0 + kKeys > at.past + 1 || (p.window != 0 && key0 <= at.end - 1 - p.window);
      bool more = false;
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          s[t][e] = scale * (row % 2 ? products[1][0][t][e] + products[1][1][t][e]
                                     : products[0][0][t][e] + products[0][1][t][e]);
      if (p.softcap > 0) {
        const float cap = p.softcap * kLog2e, twice = 2 / p.softcap; // c · tanh(x / c), from e^(2x / c)
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            s[t][e] = cap - __fdividef(2 * cap, exp2_of(s[t][e] * twice) + 1);
      }
      if (mask) {
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int key = key0 + row + e / 2 * 8, at_most = position[t][e % 2];
            s[t][e] = key <= at_most && (p.window == 0 || key > at_most - p.window) ? s[t][e] : -INFINITY;
          }
      }
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          more |= s[t][e] > m[t][e % 2];
      if (__any_sync(0xffffffffu, more)) {
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float top = fmaxf(s[t][e], s[t][e + 2]);
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 4));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 8));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 16));
            top = fmaxf(top, m[t][e]);
            const float factor = exp2_of(m[t][e] - top);
            m[t][e] = top;
            l[t][e] *= factor;
#pragma unroll
            for (int d = 0; d < kSlices; ++d)
              o[t][d][e] *= factor, o[t][d][e + 2] *= factor;
          }
      }
      uint32_t weights[kTiles][2];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          s[t][e] = exp2_of(s[t][e] - m[t][e % 2]);
          l[t][e % 2] += s[t][e];
        }
        weights[t][0] = transposed(pack<T>(s[t][0], s[t][1]));
        weights[t][1] = transposed(pack<T>(s[t][2], s[t][3]));
      }
      // Weighted values. A lane reads columns of four keys; row i of a tile of results is a column, as result() says. Odd keys'
      // lanes read their two chunks in the other order, to meet fewer in a bank, so that the rows of the tile are exchanged:
      // a product for even ones, another for odd ones.
      uint4 v[4][kChunks];
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int c = 0; c < kChunks; ++c)
          v[k][c] = load(values, quad * 2 + k % 2 + k / 2 * 8, (row * kChunks + (c ^ (kChunks == 2 ? quad % 2 : 0))) * 8);
#pragma unroll
      for (int d = 0; d < kSlices; ++d) {
        uint32_t a[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int column = d + e % 2 * kSlices, k = e / 2 * 2, w = column % 8 / 2;
          a[e] = __byte_perm(word(v[k][column / 8], w), word(v[k + 1][column / 8], w), column % 2 ? 0x7632 : 0x5410);
        }
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
          if constexpr (kChunks == 2) {
            const uint32_t exchanged[4] = {a[1], a[0], a[3], a[2]};
            mma<T>(o[t][d], a, quad % 2 ? 0 : weights[t][0], quad % 2 ? 0 : weights[t][1]);
            mma<T>(o[t][d], exchanged, quad % 2 ? weights[t][0] : 0, quad % 2 ? weights[t][1] : 0);
          } else {
            mma<T>(o[t][d], a, weights[t][0], weights[t][1]);
          }
      }
      const bool refill = issued < mine;
      if (refill)
        fence_async(); // this lane's reads come before what the copy engine writes in the same place
      __syncwarp();
      if (refill)
        issue(stage);
      if (++stage == kStages)
        stage = 0, parity ^= 1;

      const bool last = i + 1 == mine;
      if (++at.step < at.steps && !last)
        continue;
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          l[t][e] += __shfl_xor_sync(0xffffffffu, l[t][e], 4);
          l[t][e] += __shfl_xor_sync(0xffffffffu, l[t][e], 8);
          l[t][e] += __shfl_xor_sync(0xffffffffu, l[t][e], 16);
        }
      if (begun == 0 && at.step == at.steps) {
        Parts::write(p, o, l, at, group);
      } else {
        Parts::store(last ? *reinterpret_cast<Part *>(&ring) : shared.first[warp], o, m, l);
        if (lane == 0)
          shared.pair[warp * 2 + last] = at.seq * p.kv_heads + at.kv_head;
      }
      fresh = true;
      if (!last)
        line.next_pair(p, group, at);
    }
    __syncthreads();
    const auto part_of = [&](int i) -> const Part & {
      return i % 2 ? *reinterpret_cast<const Part *>(&shared.ring[i / 2]) : shared.first[i / 2];
    };
    Parts::merge(p, line, shared.pair, part_of, group, work, counters);
  }

  // Where warp i's part of a stretch begins.
  static __device__ __forceinline__ int border(int length, int i) {
    return static_cast<int>(static_cast<int64_t>(length) * i / kWarps);
  }
  static __device__ __forceinline__ int page_of(const AttentionParams &p, int key) {
    return p.page_shift >= 0 ? key >> p.page_shift : key / p.page_size;
  }
  static __device__ __forceinline__ uint4 load(const Tile &tile, int key, int column) {
    return *reinterpret_cast<const uint4 *>(&tile[key][column]);
  }
  static __device__ __forceinline__ uint32_t word(const uint4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
  }
};

template <typename T, int kDim, int kTiles, int kWarps, int kStages>
__global__ void __launch_bounds__(kWarps * 32, 1) balanced_kernel(AttentionParams p, int S, uint32_t *counters) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  Balanced<T, kDim, kTiles, kWarps, kStages>::run(p, S, counters);
#endif
}

template <typename T, int kDim, int kTiles, int kWarps, int kStages>
bool start(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  using Kernel = Balanced<T, kDim, kTiles, kWarps, kStages>;
  const DeviceLimits &device = device_limits();
  if (device.major < 9 || Kernel::kBytes > device.shared_per_block || device.sms * Kernel::kRows > kAttentionCounters)
    return false;
  auto kernel = balanced_kernel<T, kDim, kTiles, kWarps, kStages>;
  allow_shared_memory<balanced_kernel<T, kDim, kTiles, kWarps, kStages>>();
  launch(kernel, dim3(static_cast<unsigned>(device.sms)), dim3(kWarps * 32), Kernel::kBytes, stream, p, a.S,
         static_cast<uint32_t *>(a.workspace));
  return true;
}

} // namespace

template <typename T> bool balanced_decode(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  // Few sequences are sooner merged within clusters.
  const bool many = static_cast<int64_t>(a.S) * p.kv_heads * 3 >= device_limits().sms;
  const bool fits = many && a.S <= kLineSeqs && a.max_group * p.kv_heads == p.q_heads && p.page_size % kLineKeys == 0 && p.wide_q &&
                    a.ld_out % 8 == 0 && reinterpret_cast<uintptr_t>(a.out) % 16 == 0 && p.page_stride % 8 == 0 &&
                    reinterpret_cast<uintptr_t>(p.pool) % 16 == 0;
  if (!fits)
    return false;
  const bool few = static_cast<int64_t>(a.max_query) * a.max_group <= 8;
  if (p.head_dim == 128)
    return few ? start<T, 128, 1, 8, 2>(a, p, stream) : start<T, 128, 2, 7, 2>(a, p, stream);
  if (p.head_dim == 64)
    return few ? start<T, 64, 1, 10, 4>(a, p, stream) : start<T, 64, 2, 8, 4>(a, p, stream);
  return false;
}
template bool balanced_decode<__nv_bfloat16>(const Attention &, const AttentionParams &, cudaStream_t);
template bool balanced_decode<__half>(const Attention &, const AttentionParams &, cudaStream_t);

} // namespace llmrt::cuda
