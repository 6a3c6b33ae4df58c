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
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/hopper.cuh"

namespace llmrt::cuda {

namespace {

constexpr int kKeys = 16;         // of a step of a warp
constexpr int kMostSeqs = 1024;   // of a step
constexpr float kLowest = -1e30f; // in front of all scores; unlike infinity, it can be subtracted from itself

__device__ __forceinline__ uint32_t transposed(uint32_t v) {
  uint32_t t;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(v));
  return t;
}
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// kTiles · 8 query rows of a sequence and KV head at most; kStages steps in flight a warp.
template <typename T, int kDim, int kTiles, int kWarps, int kStages> struct Balanced {
  static constexpr int kRows = kTiles * 8, kSlices = kDim / 16;
  static constexpr int kChunks = kDim / 64; // of 8 columns, that a lane has of a row of results
  static constexpr int kThreads = kWarps * 32;
  // Steps on their way before the previous kernel has ended; the query, asked for next, arrives behind them.
  static constexpr int kEarly = kStages / 2;

  // An unfinished result: sums, maxima and denominators of the rows.
  struct Part {
    float o[kRows][kDim + 4]; // padded: the lanes of a warp write to all banks
    float m[kRows], l[kRows];
  };
  using Tile = T[kKeys][kDim]; // keys or values, as they lie in a page
  using Ring = Tile[kStages][2];
  struct Shared {
    Ring ring[kWarps]; // in the end, each warp's last part
    Part first[kWarps];
    T query[kWarps][kRows][kDim];   // of the sequence and KV head that comes next
    uint64_t full[kWarps][kStages]; // barriers: a step's keys and values are there
    int pair[kWarps * 2]; // whose part: sequence * kv_heads + KV head, or -1; of a warp's first part, then of its last
    int sums[kWarps];
    int starts[kMostSeqs + 1], ends[kMostSeqs]; // seq_starts, context_lens
    int prefix[kMostSeqs + 1]; // work in front of each sequence
  };
  static_assert(sizeof(Ring) >= sizeof(Part) && kWarps <= 16);
  static constexpr size_t kBytes = sizeof(Shared);

  // The query heads of a KV head; row r of a sequence is head r % size of token r / size.
  struct Group {
    int size, inverse;
    __device__ __forceinline__ explicit Group(int size) : size(size), inverse((65535 + size) / size) {}
    __device__ __forceinline__ int token(int r) const { return r * inverse >> 16; } // r < 16
    __device__ __forceinline__ int head(int r) const { return r - token(r) * size; }
  };

  // A sequence, and the place in it.
  struct Place {
    int seq, kv_head, step, steps; // of this KV head
    int start;                     // its first token among those of the batch
    int begin, past, end;          // keys: the first of step 0, how many precede the new tokens, all
  };

  static __device__ __forceinline__ void measure(const AttentionParams &p, const Shared &shared, const Group &group,
                                                 int seq, Place &at) {
    at.seq = seq, at.start = shared.starts[seq];
    const int queries = shared.starts[seq + 1] - at.start;
    at.end = shared.ends[seq], at.past = at.end - queries;
    at.begin = p.window ? max(0, at.past - p.window + 1) / kKeys * kKeys : 0;
    const bool mine = at.end > 0 && queries > 0 && queries * group.size <= min(kRows, kDecodeRows);
    at.steps = mine ? (at.end - at.begin + kKeys - 1) / kKeys : 0;
  }

  // Fills starts, ends and prefix; returns all work.
  static __device__ int plan(const AttentionParams &p, Shared &shared, const Group &group, int S) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 1
    for (int s = threadIdx.x; s <= S; s += kThreads) {
      shared.starts[s] = p.seq_starts[s];
      if (s < S)
        shared.ends[s] = p.context_lens[s];
    }
    __syncthreads();
    const int each = (S + kThreads - 1) / kThreads, first = threadIdx.x * each, last = min(S, first + each);
    Place at;
    int mine = 0;
#pragma unroll 1
    for (int s = first; s < last; ++s) {
      measure(p, shared, group, s, at);
      mine += at.steps * p.kv_heads;
    }
    int sum = mine;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, sum, offset);
      sum += lane >= offset ? other : 0;
    }
    if (lane == 31)
      shared.sums[warp] = sum;
    __syncthreads();
    int before = sum - mine, total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      before += w < warp ? shared.sums[w] : 0;
      total += shared.sums[w];
    }
#pragma unroll 1
    for (int s = first; s < last; ++s) {
      shared.prefix[s] = before;
      measure(p, shared, group, s, at);
      before += at.steps * p.kv_heads;
    }
    if (threadIdx.x == 0)
      shared.prefix[S] = total;
    __syncthreads();
    return total;
  }

  static __device__ __forceinline__ void seek(const AttentionParams &p, const Shared &shared, const Group &group, int S,
                                              int work, Place &at) {
    int lo = 0, hi = S; // prefix[lo] <= work < prefix[hi]
#pragma unroll 1
    while (hi - lo > 1) {
      const int middle = (lo + hi) / 2;
      (shared.prefix[middle] <= work ? lo : hi) = middle;
    }
    measure(p, shared, group, lo, at);
    at.kv_head = (work - shared.prefix[lo]) / at.steps;
    at.step = work - shared.prefix[lo] - at.kv_head * at.steps;
  }

  static __device__ __forceinline__ void next_pair(const AttentionParams &p, const Shared &shared, const Group &group,
                                                   Place &at) {
    at.step = 0;
    if (++at.kv_head < p.kv_heads)
      return;
    at.kv_head = 0;
    int seq = at.seq + 1;
#pragma unroll 1
    while (shared.prefix[seq] == shared.prefix[seq + 1]) // there is work left
      ++seq;
    measure(p, shared, group, seq, at);
  }

  // Which part of the line a block works on. Others may work on the same sequence and KV head unless `whole`.
  struct Share {
    int each, rest; // steps of a block; the first `rest` have one more
    bool whole;
    int first, last; // of this block
    // Where block b begins, and the block that a place in the line belongs to; not for `whole`.
    __device__ __forceinline__ int begin(int b) const { return b * each + min(b, rest); }
    __device__ __forceinline__ int owner(int work) const {
      const int longer = rest * (each + 1);
      return work < longer ? work / (each + 1) : rest + (work - longer) / each;
    }
  };

  static __device__ Share share(const AttentionParams &p, const Shared &shared, int S, int total) {
    const int pairs = S * p.kv_heads, grid = gridDim.x, block = blockIdx.x, count = (pairs + grid - 1) / grid;
    auto at_pair = [&](int i) { // the work in front of it
      const int seq = min(i, pairs) / p.kv_heads, before = shared.prefix[seq];
      return i < pairs ? before + (i - seq * p.kv_heads) * ((shared.prefix[seq + 1] - before) / p.kv_heads) : before;
    };
    // As many pairs for each block, if none then has an eighth more than its share.
    bool even = true;
#pragma unroll 1
    for (int b = threadIdx.x; b < grid; b += kThreads)
      even &= (at_pair((b + 1) * count) - at_pair(b * count)) * int64_t{8} * grid <= total * int64_t{9};
    Share mine = {};
    mine.whole = __syncthreads_and(even);
    if (mine.whole) {
      mine.first = at_pair(block * count), mine.last = at_pair((block + 1) * count);
    } else {
      const int blocks = min(grid, (total + kWarps - 1) / kWarps);
      mine.each = total / blocks, mine.rest = total - blocks * mine.each;
      mine.first = mine.begin(min(block, blocks)), mine.last = mine.begin(min(block + 1, blocks));
    }
    return mine;
  }

  // Starts the copy of the query rows of a sequence and KV head; zeros for rows past the end.
  static __device__ __forceinline__ void fetch_query(const AttentionParams &p, T (&to)[kRows][kDim], const Group &group,
                                                     const Place &at) {
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
    const Group group(p.q_heads / p.kv_heads);
    const uint32_t full = shared_address(shared.full[warp]);
    if (lane < kStages)
      barrier_init(full + lane * 8, 1);
    if (lane < 2)
      shared.pair[warp * 2 + lane] = -1;
    fence_barriers();
    const Share work = share(p, shared, S, plan(p, shared, group, S));
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
    auto look = [&](int i, Place &at) -> int64_t {
      seek(p, shared, group, S, first + i, at);
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
        Place at;
        ahead = look(issued + 16 + lane, at);
      }
      ++issued;
    };
    Place at = {};
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
      seek(p, shared, group, S, first, at);
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
          Place next = at;
          next_pair(p, shared, group, next);
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
      __syncwarp();
      if (issued < mine)
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
        write(p, o, l, at, group);
      } else {
        store(last ? *reinterpret_cast<Part *>(&ring) : shared.first[warp], o, m, l);
        if (lane == 0)
          shared.pair[warp * 2 + last] = at.seq * p.kv_heads + at.kv_head;
      }
      fresh = true;
      if (!last)
        next_pair(p, shared, group, at);
    }
    __syncthreads();
    merge(p, shared, group, work, counters);
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
  // This lane's column i of row `quad * 2 + e` of a tile of results: column lane / 4 * 8 * kChunks + i of the row.
  static __device__ __forceinline__ float result(const float (&o)[kSlices][4], int i, int e) {
    return o[i % kSlices][i / kSlices * 2 + e];
  }
  static __device__ __forceinline__ T *out_at(const AttentionParams &p, const Place &at, const Group &group, int r) {
    return static_cast<T *>(p.out) + (at.start + group.token(r)) * p.ld_out + (at.kv_head * group.size + group.head(r)) * kDim;
  }

  // A result that one warp has whole.
  static __device__ __forceinline__ void write(const AttentionParams &p, const float (&o)[kTiles][kSlices][4],
                                               const float (&l)[kTiles][2], const Place &at, const Group &group) {
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

  // Merges the parts of the sequences and KV heads that several warps worked on; a warp takes kAtOnce rows at a time.
  static __device__ __forceinline__ void merge(const AttentionParams &p, const Shared &shared, const Group &group,
                                               const Share &work, uint32_t *counters) {
    constexpr int kTurns = kRows / kAtOnce;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, block = blockIdx.x;
    const int in_turn = lane / kLanes, column = lane % kLanes * 4;
    const int id = lane < kWarps * 2 ? shared.pair[lane] : -1;
    const uint32_t valid = __ballot_sync(0xffffffffu, id >= 0), below = valid & ((1u << lane) - 1);
    const int before = __shfl_sync(0xffffffffu, id, below ? 31 - __clz(below) : 0);
    const uint32_t begins = __ballot_sync(0xffffffffu, id >= 0 && !(below && before == id));
    const int rank = __popc(begins & ((2u << lane) - 1)) - 1; // which of them a part belongs to
    auto locate = [&](int whose, Place &at) {
      measure(p, shared, group, whose / p.kv_heads, at);
      at.kv_head = whose % p.kv_heads;
    };

    int waiting = 0, first = 0, last = 0, what = 0; // lane i: of the i-th rows that other blocks have worked on
#pragma unroll 1
    for (int i = warp; i < __popc(begins) * kTurns; i += kWarps) {
      uint32_t mask = __ballot_sync(0xffffffffu, id >= 0 && rank == i / kTurns);
      const int whose = __shfl_sync(0xffffffffu, id, __ffs(mask) - 1), r = i % kTurns * kAtOnce + in_turn;
      Place at;
      locate(whose, at);
      const int rows = (at.end - at.past) * group.size;
      if (i % kTurns * kAtOnce >= rows)
        continue;
      Sum sum, next;
      auto read = [&]() { // the next of the parts
        const int slot = __ffs(mask) - 1;
        const Part &part = slot % 2 ? *reinterpret_cast<const Part *>(&shared.ring[slot / 2]) : shared.first[slot / 2];
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
      const int begin = shared.prefix[at.seq] + at.kv_head * at.steps;
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
      Place at;
      locate(which / kTurns, at);
      if (r < (at.end - at.past) * group.size)
        sum.write(out_at(p, at, group, r));
    }
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
  const bool fits = many && a.S <= kMostSeqs && a.max_group * p.kv_heads == p.q_heads && p.page_size % kKeys == 0 && p.wide_q &&
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
