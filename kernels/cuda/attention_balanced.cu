// Decode attention of whole batches in one round: every warp of the device streams an equal share of all keys of the step.
//
// The work of a step is a line of blocks of 16 keys: sequence by sequence, KV head by KV head. Each thread block takes an
// equal stretch of that line, each of its warps an equal part of the stretch, so that ragged lengths leave nobody idle and
// no bound of the context matters. A warp has a ring of shared memory of its own that runs on over the borders of
// sequences; blocks of keys that earlier steps wrote are on their way before the previous kernel has ended. Keys and value
// columns are the M side of the tensor-core tiles and the query heads of the KV head the N side: a group of up to eight is
// one tile. What warps computed of one sequence and head meets in shared memory; what thread blocks did meets in the
// workspace, where the last one to arrive merges all parts in order.
#include "kernels/cuda/attention.cuh"

namespace llmrt::cuda {

namespace {

constexpr int kKeys = 16;       // of a step of a warp
constexpr int kMostSeqs = 1024; // of a step

__device__ __forceinline__ uint32_t transposed(uint32_t v) {
  uint32_t t;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(v));
  return t;
}

// kTiles · 8 query rows of a sequence and KV head at most; kStages steps in flight a warp.
template <typename T, int kDim, int kTiles, int kWarps, int kStages> struct Balanced {
  static constexpr int kRows = kTiles * 8, kSlices = kDim / 16;
  static constexpr int kStride = kDim + 8; // padded rows: ldmatrix meets no bank conflict

  // An unfinished result: sums, maxima and denominators of the rows.
  struct Part {
    float o[kRows][kDim + 4]; // padded: the lanes of a warp write to all banks
    float m[kRows], l[kRows];
  };
  using Ring = T[kStages][2][kKeys][kStride]; // keys, values
  struct Shared {
    Ring ring[kWarps]; // in the end, each warp's last part
    Part first[kWarps];
    int pair[kWarps * 2]; // whose part: sequence * kv_heads + KV head, or -1; of a warp's first part, then of its last
    int sums[kWarps];
    int prefix[kMostSeqs + 1]; // work in front of each sequence
  };
  static_assert(sizeof(Ring) >= sizeof(Part));
  static constexpr size_t kBytes = sizeof(Shared);

  // A sequence, and the place in it.
  struct Place {
    int seq, kv_head, step, steps; // of this KV head
    int begin, past, end;          // keys: the first of step 0, how many precede this step's tokens, all
  };

  static __device__ __forceinline__ int measure(const AttentionParams &p, int group, int seq, Place &at) {
    const int queries = p.seq_starts[seq + 1] - p.seq_starts[seq];
    at.seq = seq;
    at.end = p.context_lens[seq], at.past = at.end - queries;
    at.begin = p.window ? max(0, at.past - p.window + 1) / kKeys * kKeys : 0;
    const bool mine = at.end > 0 && queries > 0 && queries * group <= min(kRows, kDecodeRows);
    return at.steps = mine ? (at.end - at.begin + kKeys - 1) / kKeys : 0;
  }

  // Fills shared.prefix; returns all work.
  static __device__ int plan(const AttentionParams &p, Shared &shared, int group, int S) {
    constexpr int kThreads = kWarps * 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, each = (S + kThreads - 1) / kThreads;
    const int first = threadIdx.x * each, last = min(S, first + each);
    Place at;
    int mine = 0;
    for (int s = first; s < last; ++s)
      mine += measure(p, group, s, at) * p.kv_heads;
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
    for (int s = first; s < last; ++s) {
      shared.prefix[s] = before;
      before += measure(p, group, s, at) * p.kv_heads;
    }
    if (threadIdx.x == 0)
      shared.prefix[S] = total;
    __syncthreads();
    return total;
  }

  static __device__ __forceinline__ void seek(const AttentionParams &p, const Shared &shared, int group, int S, int work, Place &at) {
    int lo = 0, hi = S; // prefix[lo] <= work < prefix[hi]
    while (hi - lo > 1) {
      const int middle = (lo + hi) / 2;
      (shared.prefix[middle] <= work ? lo : hi) = middle;
    }
    measure(p, group, lo, at);
    at.kv_head = (work - shared.prefix[lo]) / at.steps;
    at.step = (work - shared.prefix[lo]) % at.steps;
  }

  static __device__ __forceinline__ void next_pair(const AttentionParams &p, const Shared &shared, int group, Place &at) {
    at.step = 0;
    if (++at.kv_head < p.kv_heads)
      return;
    at.kv_head = 0;
    int seq = at.seq + 1;
    while (shared.prefix[seq] == shared.prefix[seq + 1]) // there is work left
      ++seq;
    measure(p, group, seq, at);
  }

  // Copies the keys of a step and their values; zeros behind the last key.
  static __device__ __forceinline__ void copy(const AttentionParams &p, T (&to)[2][kKeys][kStride], const T *keys, int valid) {
    constexpr int kChunks = kDim / 8, kLines = 32 / kChunks;
    const int lane = threadIdx.x % 32, r = lane / kChunks, c = lane % kChunks * 8;
    const T *from = keys + lane * 8;
    const int64_t values = static_cast<int64_t>(p.kv_heads) * p.page_size * kDim;
    if (valid >= kKeys) {
#pragma unroll
      for (int j = 0; j < kKeys / kLines; ++j)
        copy_async<16>(&to[0][r + j * kLines][c], from + j * kLines * kDim, true);
#pragma unroll
      for (int j = 0; j < kKeys / kLines; ++j)
        copy_async<16>(&to[1][r + j * kLines][c], from + values + j * kLines * kDim, true);
      return;
    }
    for (int j = 0; j < kKeys / kLines; ++j) {
      const bool here = r + j * kLines < valid;
      copy_async<16>(&to[0][r + j * kLines][c], here ? from + j * kLines * kDim : keys, here);
      copy_async<16>(&to[1][r + j * kLines][c], here ? from + values + j * kLines * kDim : keys, here);
    }
  }

  static __device__ void run(const AttentionParams &p, int S, uint32_t *counters) {
    extern __shared__ __align__(16) char raw[];
    Shared &shared = *reinterpret_cast<Shared *>(raw);
    let_next_start();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4 * 2;
    const int group = p.q_heads / p.kv_heads;
    const int total = plan(p, shared, group, S);
    const int blocks = min(static_cast<int>(gridDim.x), (total + kWarps - 1) / kWarps), block = blockIdx.x;
    if (block >= blocks) {
      wait_for_previous();
      return;
    }
    const int block_first = border(total, block, blocks), block_last = border(total, block + 1, blocks);
    const int first = block_first + border(block_last - block_first, warp, kWarps);
    const int mine = block_first + border(block_last - block_first, warp + 1, kWarps) - first;

    Ring &ring = shared.ring[warp];
    int64_t from = 0; // lane i: where the keys of step (issued / 32 * 32 + i) of this warp are, and how many
    int valid = 0, issued = 0;
    bool old = false; // earlier steps wrote them
    auto look = [&]() {
      if (issued + lane >= mine)
        return;
      Place at;
      seek(p, shared, group, S, first + issued + lane, at);
      const int key0 = at.begin + at.step * kKeys, in_sequence = page_of(p, key0);
      const int64_t page = p.page_table[at.seq * p.page_table_stride + in_sequence];
      from = page * p.page_stride + (at.kv_head * p.page_size + key0 - in_sequence * p.page_size) * kDim;
      valid = at.end - key0, old = key0 + kKeys <= at.past;
    };
    auto issue = [&](int stage) {
      if (issued > 0 && issued % 32 == 0)
        look();
      copy(p, ring[stage], static_cast<const T *>(p.pool) + __shfl_sync(0xffffffffu, from, issued % 32),
           __shfl_sync(0xffffffffu, valid, issued % 32));
      ++issued;
    };
    look();
    const int early = __ffs(~__ballot_sync(0xffffffffu, old)) - 1; // -1: all 32
    int started = 0;
    for (; started < kStages && started < mine && (early < 0 || started < early); ++started) {
      issue(started);
      commit_copies();
    }
    Place at = {};
    if (mine > 0)
      seek(p, shared, group, S, first, at);
    wait_for_previous();
    for (; started < kStages; ++started) {
      if (issued < mine)
        issue(started);
      commit_copies();
    }

    if (lane < 2)
      shared.pair[warp * 2 + lane] = -1;
    const float scale = p.softcap > 0 ? p.scale / p.softcap : p.scale * kLog2e;
    float o[kTiles][kSlices][4], m[kTiles][2], l[kTiles][2];
    uint32_t q[kTiles][kSlices][2];
    int position[kTiles][2], begun = 0;
    bool fresh = true;
    for (int i = 0, stage = 0; i < mine; ++i) {
      if (fresh) { // this lane's query rows are the columns of its accumulators; rows past the end are zero and see all
        const int start = p.seq_starts[at.seq], rows = (at.end - at.past) * group;
        begun = at.step, fresh = false;
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          const int r = t * 8 + row;
          const T *from = static_cast<const T *>(p.q) + (start + r / group) * p.ld_q +
                          static_cast<int64_t>(at.kv_head * group + r % group) * kDim + pair;
#pragma unroll
          for (int d = 0; d < kSlices; ++d) {
            q[t][d][0] = r < rows ? *reinterpret_cast<const uint32_t *>(from + d * 16) : 0;
            q[t][d][1] = r < rows ? *reinterpret_cast<const uint32_t *>(from + d * 16 + 8) : 0;
#pragma unroll
            for (int e = 0; e < 4; ++e)
              o[t][d][e] = 0;
          }
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            m[t][e] = -INFINITY, l[t][e] = 0;
            position[t][e] = at.past + min(t * 8 + pair + e, rows - 1) / group;
          }
        }
      }
      wait_copies<kStages - 1>();
      __syncwarp();
      const T(*keys)[kStride] = ring[stage][0], (*values)[kStride] = ring[stage][1];
      const int key0 = at.begin + at.step * kKeys;

      // Scores: 16 keys × the rows; two chains of products.
      float s[kTiles][4], odd[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          s[t][e] = odd[t][e] = 0;
#pragma unroll
      for (int d = 0; d < kSlices; ++d) {
        uint32_t k[4];
        load_matrices(k, &keys[lane % 16][d * 16 + lane / 16 * 8]);
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
          mma<T>(d % 2 ? odd[t] : s[t], k, q[t][d][0], q[t][d][1]);
      }
      // Mask where the step reaches past what all rows see; online softmax, base 2.
      const bool mask = key0 + kKeys > at.past + 1 || (p.window != 0 && key0 <= at.end - 1 - p.window);
      bool more = false;
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float x = (s[t][e] + odd[t][e]) * scale;
          if (p.softcap > 0)
            x = p.softcap * kLog2e * tanhf(x);
          if (mask) {
            const int key = key0 + row + e / 2 * 8, at_most = position[t][e % 2];
            x = key <= at_most && (p.window == 0 || key > at_most - p.window) ? x : -INFINITY;
          }
          s[t][e] = x;
          more |= x > m[t][e % 2];
        }
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
            const float factor = top == -INFINITY ? 1.0f : exp2f(m[t][e] - top);
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
          s[t][e] = m[t][e % 2] == -INFINITY ? 0.0f : exp2f(s[t][e] - m[t][e % 2]);
          l[t][e % 2] += s[t][e];
        }
        weights[t][0] = transposed(pack<T>(s[t][0], s[t][1]));
        weights[t][1] = transposed(pack<T>(s[t][2], s[t][3]));
      }
#pragma unroll
      for (int d = 0; d < kSlices; ++d) {
        uint32_t v[4];
        load_matrices_transposed(v, &values[lane % 8 + lane / 16 * 8][d * 16 + lane / 8 % 2 * 8]);
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
          mma<T>(o[t][d], v, weights[t][0], weights[t][1]);
      }
      __syncwarp();
      if (issued < mine)
        issue(stage);
      commit_copies();
      stage = stage + 1 == kStages ? 0 : stage + 1;

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
        if (last)
          wait_copies<0>();
        Part &part = last ? *reinterpret_cast<Part *>(&ring) : shared.first[warp];
        store(part, o, m, l);
        if (lane == 0)
          shared.pair[warp * 2 + last] = at.seq * p.kv_heads + at.kv_head;
      }
      fresh = true;
      if (!last)
        next_pair(p, shared, group, at);
    }
    __syncthreads();
#pragma unroll 1
    for (int slot = 0; slot < 2; ++slot)
      merge(p, shared, warp * 2 + slot, group, total, block, blocks, counters);
  }

  // Where part i of n of a stretch begins.
  static __device__ __forceinline__ int border(int length, int i, int n) {
    return static_cast<int>(static_cast<int64_t>(length) * i / n);
  }
  static __device__ __forceinline__ int page_of(const AttentionParams &p, int key) {
    return p.page_shift >= 0 ? key >> p.page_shift : key / p.page_size;
  }
  static __device__ __forceinline__ T *out_at(const AttentionParams &p, int start, int head, int group, int r) {
    return static_cast<T *>(p.out) + (start + r / group) * p.ld_out + static_cast<int64_t>(head + r % group) * kDim;
  }

  // A result that one warp has whole.
  static __device__ __forceinline__ void write(const AttentionParams &p, const float (&o)[kTiles][kSlices][4],
                                               const float (&l)[kTiles][2], const Place &at, int group) {
    const int lane = threadIdx.x % 32, rows = (at.end - at.past) * group, start = p.seq_starts[at.seq];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const float scale[2] = {1.0f / l[t][0], 1.0f / l[t][1]};
      const int r = t * 8 + lane / 4;
      T *to = out_at(p, start, at.kv_head * group, group, r) + lane % 4 * 2;
#pragma unroll
      for (int d = 0; d < kSlices; ++d) {
        const uint32_t low = transposed(pack<T>(o[t][d][0] * scale[0], o[t][d][1] * scale[1]));
        const uint32_t high = transposed(pack<T>(o[t][d][2] * scale[0], o[t][d][3] * scale[1]));
        if (r < rows) {
          *reinterpret_cast<uint32_t *>(to + d * 16) = low;
          *reinterpret_cast<uint32_t *>(to + d * 16 + 8) = high;
        }
      }
    }
  }

  static __device__ __forceinline__ void store(Part &part, const float (&o)[kTiles][kSlices][4], const float (&m)[kTiles][2],
                                               const float (&l)[kTiles][2]) {
    const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4 * 2;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int d = 0; d < kSlices; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          part.o[t * 8 + pair + e % 2][d * 16 + row + e / 2 * 8] = o[t][d][e];
      if (row < 2)
        part.m[t * 8 + pair + row] = row ? m[t][1] : m[t][0], part.l[t * 8 + pair + row] = row ? l[t][1] : l[t][0];
    }
  }

  static __device__ __forceinline__ const Part &part_of(const Shared &shared, int i) {
    return i % 2 ? *reinterpret_cast<const Part *>(&shared.ring[i / 2]) : shared.first[i / 2];
  }

  // A merged result: this lane's four columns of some rows.
  struct Sum {
    static constexpr int kEach = kRows * kDim / 128;
    float4 o[kEach] = {};
    float m[kEach], l[kEach] = {};
    __device__ __forceinline__ Sum() {
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        m[i] = -INFINITY;
    }
    static __device__ __forceinline__ int row(int i) { return (i * 128 + threadIdx.x % 32 * 4) / kDim; }
    static __device__ __forceinline__ int column() { return threadIdx.x % 32 * 4 % kDim; }
    // One more part. `get` gives a row's four columns, maximum and denominator; all are on their way before the first is used.
    template <typename F> __device__ __forceinline__ void add(F &&get) {
      float4 x[kEach];
      float2 ml[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i)
        get(row(i), column(), x[i], ml[i]);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const float top = fmaxf(m[i], ml[i].x);
        const float keep = m[i] == -INFINITY ? 0.0f : exp2f(m[i] - top), take = ml[i].x == -INFINITY ? 0.0f : exp2f(ml[i].x - top);
        o[i].x = o[i].x * keep + x[i].x * take, o[i].y = o[i].y * keep + x[i].y * take;
        o[i].z = o[i].z * keep + x[i].z * take, o[i].w = o[i].w * keep + x[i].w * take;
        l[i] = l[i] * keep + ml[i].y * take, m[i] = top;
      }
    }
    __device__ __forceinline__ void write(const AttentionParams &p, int start, int head, int group, int rows) const {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const float scale = 1.0f / l[i];
        if (row(i) < rows)
          *reinterpret_cast<uint2 *>(out_at(p, start, head, group, row(i)) + column()) =
              make_uint2(pack<T>(o[i].x * scale, o[i].y * scale), pack<T>(o[i].z * scale, o[i].w * scale));
      }
    }
  };

  // A warp merges the parts of one sequence and KV head that begin with part i of its block, if any do.
  static __device__ __forceinline__ void merge(const AttentionParams &p, const Shared &shared, int i, int group, int total,
                                               int block, int blocks, uint32_t *counters) {
    const int id = shared.pair[i], lane = threadIdx.x % 32;
    if (id < 0)
      return;
    for (int before = i - 1; before >= 0; --before)
      if (shared.pair[before] >= 0) {
        if (shared.pair[before] == id)
          return;
        break;
      }
    Place at;
    measure(p, group, id / p.kv_heads, at);
    const int head = id % p.kv_heads * group, rows = (at.end - at.past) * group, start = p.seq_starts[at.seq];
    const int begin = shared.prefix[at.seq] + id % p.kv_heads * at.steps, end = begin + at.steps; // of the line of work
    Sum sum;
    for (int j = i; j < kWarps * 2 && (shared.pair[j] == id || shared.pair[j] < 0); ++j)
      if (shared.pair[j] == id) {
        const Part &part = part_of(shared, j);
        sum.add([&](int r, int d, float4 &x, float2 &ml) {
          x = *reinterpret_cast<const float4 *>(&part.o[r][d]);
          ml = make_float2(part.m[r], part.l[r]);
        });
      }
    const int first_block = owner(begin, total, blocks), last_block = owner(end - 1, total, blocks);
    if (first_block == last_block)
      return sum.write(p, start, head, group, rows);

    // The last block to arrive merges, in order, and leaves the counter as it was.
    float *mine = p.partial + (block * 2 + (block == first_block)) * kPartFloats;
#pragma unroll
    for (int e = 0; e < Sum::kEach; ++e) {
      const int r = Sum::row(e), d = Sum::column();
      __stcg(reinterpret_cast<float4 *>(mine + r * kDim + d), sum.o[e]);
      if (d == 0)
        __stcg(reinterpret_cast<float2 *>(mine + kRows * kDim + r * 2), make_float2(sum.m[e], sum.l[e]));
    }
    __syncwarp();
    uint32_t arrived = 0;
    if (lane == 0) {
      __threadfence();
      arrived = atomicAdd(&counters[first_block], 1u);
    }
    if (__shfl_sync(0xffffffffu, arrived, 0) != static_cast<uint32_t>(last_block - first_block))
      return;
    __threadfence();
    if (lane == 0)
      counters[first_block] = 0;
    Sum all;
#pragma unroll 2
    for (int b = first_block; b <= last_block; ++b) {
      const float *part = p.partial + (b * 2 + (b == first_block)) * kPartFloats;
      all.add([&](int r, int d, float4 &x, float2 &ml) {
        x = __ldcg(reinterpret_cast<const float4 *>(part + r * kDim + d));
        ml = __ldcg(reinterpret_cast<const float2 *>(part + kRows * kDim + r * 2));
      });
    }
    all.write(p, start, head, group, rows);
  }
  static constexpr int kPartFloats = kRows * (kDim + 4);

  // The block that a place in the line of work belongs to.
  static __device__ __forceinline__ int owner(int work, int total, int blocks) {
    return static_cast<int>((static_cast<int64_t>(work + 1) * blocks - 1) / total);
  }
};

template <typename T, int kDim, int kTiles, int kWarps, int kStages>
__global__ void __launch_bounds__(kWarps * 32, 1) balanced_kernel(AttentionParams p, int S, uint32_t *counters) {
  Balanced<T, kDim, kTiles, kWarps, kStages>::run(p, S, counters);
}

template <typename T, int kDim, int kTiles, int kWarps, int kStages>
bool start(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  const DeviceLimits &device = device_limits();
  constexpr size_t kBytes = Balanced<T, kDim, kTiles, kWarps, kStages>::kBytes;
  if (kBytes > device.shared_per_block || device.sms > kAttentionCounters)
    return false;
  auto kernel = balanced_kernel<T, kDim, kTiles, kWarps, kStages>;
  allow_shared_memory<balanced_kernel<T, kDim, kTiles, kWarps, kStages>>();
  launch(kernel, dim3(static_cast<unsigned>(device.sms)), dim3(kWarps * 32), kBytes, stream, p, a.S,
         static_cast<uint32_t *>(a.workspace));
  return true;
}

} // namespace

template <typename T> bool balanced_decode(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  // Few sequences are sooner merged within clusters.
  const bool many = static_cast<int64_t>(a.S) * p.kv_heads * 3 >= device_limits().sms;
  const bool fits = many && a.S <= kMostSeqs && a.max_group * p.kv_heads == p.q_heads && p.page_size % kKeys == 0 && p.wide_q &&
                    a.ld_out % 4 == 0 && reinterpret_cast<uintptr_t>(a.out) % 8 == 0 && p.page_stride % 8 == 0 &&
                    reinterpret_cast<uintptr_t>(p.pool) % 16 == 0;
  if (!fits)
    return false;
  const bool few = static_cast<int64_t>(a.max_query) * a.max_group <= 8;
  if (p.head_dim == 128)
    return few ? start<T, 128, 1, 7, 3>(a, p, stream) : start<T, 128, 2, 6, 3>(a, p, stream);
  if (p.head_dim == 64)
    return few ? start<T, 64, 1, 10, 4>(a, p, stream) : start<T, 64, 2, 8, 4>(a, p, stream);
  return false;
}
template bool balanced_decode<__nv_bfloat16>(const Attention &, const AttentionParams &, cudaStream_t);
template bool balanced_decode<__half>(const Attention &, const AttentionParams &, cudaStream_t);

} // namespace llmrt::cuda
