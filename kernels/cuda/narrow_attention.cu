// The attention half of a narrow layer in one launch (narrow.h): norm, q, k and v, rotation, append, attention, output product.
//
// Each KV head has a cluster. Its blocks multiply the rows of that head's q, k and v; those of a sequence send what came of them
// to each other, take some of its keys each and send what came of those to all blocks, which merge it and multiply it by the
// columns of the output weight that belong to these heads, each block some rows of them. Keys of earlier tokens are on their way
// before the kernel in front has ended; the new key never comes from memory.
#include "kernels/cuda/attention_step.cuh"
#include "kernels/cuda/narrow.cuh"
#include "kernels/cuda/rotation.cuh"

namespace llmrt::cuda {

namespace {

using T = __nv_bfloat16;

constexpr int kAttentionWarps = 4; // of a block; each has a ring of kStages steps of keys
constexpr int kStages = 2, kKeys = 16;
constexpr int kDim = 64; // of a head: of wider ones a block can hold too little

struct AttentionHalfParams {
  NarrowResidual in;
  const float *norm, *qkv_bias, *output_bias, *inv_freq, *q_norm, *k_norm;
  const T *qkv, *output;
  const int32_t *positions, *context_lens, *page_table;
  const int64_t *slots;
  T *pool;
  float *parts;
  int64_t page_stride, page_table_stride; // of the pool: elements
  float eps, norm_offset, rope_eps, attention_factor, scale, softcap;
  int M, H, q_heads, kv_heads, group, rotary_dim, page_size, window, cluster, steps;
  bool interleaved;
  struct {
    int qkv, output, norm, bias, x, sums, squares, heads, own_heads, query, fresh, angles, ring, merge, incoming, merged, blocks, barriers;
  } at; // in shared memory
};

// Barriers: q, k, v and norm are there, output is there, the other blocks' rows of q, k and v, what came of the keys.
enum { kQkv, kOutput, kHeads, kParts, kBarriers };

// Which of a sequence's keys a block takes: steps of kKeys; the last step is the new key alone.
struct KeyShare {
  int past, begin, steps, each; // steps of the sequence, of a block
  __device__ KeyShare(const AttentionHalfParams &p, int context, int blocks) {
    past = context - 1;
    const int oldest = p.window ? max(0, past - p.window + 1) : 0;
    begin = oldest / kKeys * kKeys;
    steps = context > 0 ? (oldest < past ? (past - begin + kKeys - 1) / kKeys : 0) + 1 : 0; // each has a key that is seen
    each = max(p.steps, (steps + blocks - 1) / blocks);
  }
  __device__ int blocks() const { return (steps + each - 1) / each; } // that have any
};

struct AttentionHalf {
  using Step = DecodeStep<T, kDim>;
  static constexpr int kStride = Step::kStride;
  using Tile = T[kKeys][kStride];
  using Ring = Tile[kStages][2]; // keys, values
  // What a warp's keys came to, of each row; o is not divided by l yet.
  static constexpr int kLine = kDim + 4;

  // What a block sends: its sums, then maximum and denominator of each row; how far apart those of two blocks lie.
  static __host__ __device__ __forceinline__ int sent_floats(int group) { return group * (kDim + 2); }
  static __host__ __device__ __forceinline__ int incoming_floats(int group) { return (sent_floats(group) + 3) / 4 * 4; }

  // Keys and values key0 … + 15, zeros from `end` on.
  static __device__ __forceinline__ void copy(Tile (&to)[2], const T *block, int64_t values, int key0, int end) {
    constexpr int kEach = kDim / 8;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = lane; i < kKeys * kEach; i += 32) {
      const int r = i / kEach, c = i % kEach * 8;
      const bool valid = key0 + r < end;
      copy_async<16>(&to[0][r][c], valid ? block + r * kDim + c : block, valid);
      copy_async<16>(&to[1][r][c], valid ? block + values + r * kDim + c : block, valid);
    }
  }

  // A head as it came from the product: its norm if it has one, the rotation, and away to `to`. One warp.
  static __device__ __forceinline__ void rotate(const AttentionHalfParams &p, const T *x, const float *norm, const float *angles, T *to) {
    const int lane = threadIdx.x % 32, half = p.rotary_dim / 2;
    float scale = 1;
    if (norm) {
      float square = 0;
#pragma unroll
      for (int i = lane; i < kDim; i += 32)
        square += to_float(x[i]) * to_float(x[i]);
      scale = rsqrtf(warp_sum(square) / kDim + p.rope_eps);
    }
    const auto at = [&](int i) { return norm ? to_float(x[i]) * scale * norm[i] : to_float(x[i]); };
    for (int i = lane; i < half; i += 32) {
      const int a = p.interleaved ? 2 * i : i, b = p.interleaved ? 2 * i + 1 : i + half;
      const float c = angles[i], s = angles[half + i], xa = at(a), xb = at(b);
      to[a] = from_float<T>(xa * c - xb * s);
      to[b] = from_float<T>(xb * c + xa * s);
    }
    for (int i = p.rotary_dim + lane; i < kDim; i += 32)
      to[i] = from_float<T>(at(i));
  }

  // How the threads of a block share what its keys came to: four columns each, for every so many of the blocks.
  struct Merged {
    int fours, first, block, step; // of the group's columns; this thread's, and its first block
    __device__ explicit Merged(const AttentionHalfParams &p) {
      fours = p.group * (kDim / 4);
      const int threads = blockDim.x, turns = threads / fours;
      first = turns ? threadIdx.x % fours : threadIdx.x, block = turns ? threadIdx.x / fours : 0, step = turns ? turns : 1;
      if (block >= step)
        block = 1 << 30; // left over
    }
  };

  static __device__ void run(const AttentionHalfParams &p) {
    extern __shared__ __align__(128) char raw[];
    let_next_start();
    const uint32_t shared = shared_address(raw);
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32;
    const int M = p.M, H = p.H, group = p.group, rank = static_cast<int>(cluster_rank()), kv_head = blockIdx.x / p.cluster;
    const int heads = (group + 2) * kDim; // rows of this KV head's q, k and v
    const NarrowShare head_rows(heads, p.cluster, rank, 8), rows(H, p.cluster, rank, 1);
    const int each = p.cluster / M, seq = rank / each, index = rank % each; // blocks of a sequence; of this block
    const auto barrier = [&](int i) { return shared + p.at.barriers + i * 8; };

    int *blocks = reinterpret_cast<int *>(raw + p.at.blocks); // of each sequence, that have keys
    int context = 0, expected = 0; // of this block's sequence; how many blocks will send what their keys came to
    for (int m = 0; m < M; ++m) {
      const int c = p.context_lens[m], count = KeyShare(p, c, each).blocks();
      context = m == seq ? c : context;
      expected += count;
      if (threadIdx.x == 0)
        blocks[m] = count;
    }
    const KeyShare keys(p, context, each);
    const bool active = seq < M && index * keys.each < keys.steps;
    if (threadIdx.x == 0) {
      for (int i = 0; i < kBarriers; ++i)
        barrier_init(barrier(i), 1);
      fence_barriers();
      barrier_expect(barrier(kHeads), active ? heads * static_cast<int>(sizeof(T)) : 0);
      barrier_expect(barrier(kParts), expected * sent_floats(group) * 4);
    }
    __syncthreads();
    cluster_arrive();
    const auto weight_row = [&](int i) {
      const int r = head_rows.first + i;
      return r < group * kDim          ? kv_head * group * kDim + r
             : r < (group + 1) * kDim ? (p.q_heads - group + kv_head) * kDim + r
                                       : (p.q_heads + p.kv_heads - group - 1 + kv_head) * kDim + r;
    };
    if (warp == warps - 1) {
      hold_rows(shared + p.at.qkv, held_pitch(H), H * 2, head_rows.count, barrier(kQkv), H * 4,
                [&](int i) { return p.qkv + static_cast<int64_t>(weight_row(i)) * H; });
      if (lane == 0)
        copy_bulk(shared + p.at.norm, p.norm, H * 4, barrier(kQkv));
    } else if (warp == warps - 2) {
      const int64_t columns = static_cast<int64_t>(p.q_heads) * kDim, first = static_cast<int64_t>(kv_head) * group * kDim;
      hold_rows(shared + p.at.output, held_pitch(group * kDim), group * kDim * 2, rows.count, barrier(kOutput), 0,
                [&](int i) { return p.output + (rows.first + i) * columns + first; });
    }

    // This block's keys, and the first of each warp's on their way.
    const int first = index * keys.each + warp, last = min(keys.steps, (index + 1) * keys.each);
    const int mine = active && warp < kAttentionWarps && first < last ? (last - first + kAttentionWarps - 1) / kAttentionWarps : 0;
    const bool has_new = active && last == keys.steps;
    const int stored = mine - (has_new && mine && first + (mine - 1) * kAttentionWarps == keys.steps - 1); // steps from pages
    Ring &ring = reinterpret_cast<Ring *>(raw + p.at.ring)[warp < kAttentionWarps ? warp : 0];
    const int32_t *pages = p.page_table + (active ? seq : 0) * p.page_table_stride;
    const int64_t values = static_cast<int64_t>(p.kv_heads) * p.page_size * kDim;
    const auto key_of = [&](int step) { return keys.begin + (first + step * kAttentionWarps) * kKeys; };
    int page_ids = 0, page_base = -32; // lane i: the page of this warp's step page_base + i
    const auto load = [&](int step) {
      if (step >= page_base + 32) {
        page_base = step;
        page_ids = step + lane < stored ? pages[key_of(step + lane) / p.page_size] : 0;
      }
      const int64_t page = __shfl_sync(0xffffffffu, page_ids, step - page_base);
      const T *block = p.pool + page * p.page_stride + static_cast<int64_t>(kv_head * p.page_size + key_of(step) % p.page_size) * kDim;
      copy(ring[step % kStages], block, values, key_of(step), keys.past);
    };
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      if (s < stored)
        load(s);
      commit_copies();
    }

    // What else no kernel before this one writes.
    float *bias = reinterpret_cast<float *>(raw + p.at.bias), *output_bias = bias + head_rows.count;
    hold_bias(bias, p.qkv_bias, head_rows.count, weight_row);
    hold_bias(output_bias, kv_head == 0 ? p.output_bias : nullptr, rows.count, [&](int i) { return rows.first + i; });
    float *angles = reinterpret_cast<float *>(raw + p.at.angles);
    T(*query)[kStride] = reinterpret_cast<T(*)[kStride]>(raw + p.at.query);
    Tile *fresh = reinterpret_cast<Tile *>(raw + p.at.fresh); // the new key, and its value: the first rows of these
    T *append_to = nullptr; // the pages' place for the new key
    if (active) {
      for (int i = threadIdx.x; i < p.rotary_dim / 2; i += blockDim.x)
        rotation(p.positions[seq], p.inv_freq[i], p.attention_factor, angles[i], angles[p.rotary_dim / 2 + i]);
      for (int i = threadIdx.x; i < kKeys * kStride / 2; i += blockDim.x) {
        reinterpret_cast<uint32_t *>(query)[i] = 0;
        reinterpret_cast<uint32_t *>(fresh[0])[i] = reinterpret_cast<uint32_t *>(fresh[1])[i] = 0;
      }
      if (const int64_t slot = has_new ? p.slots[seq] : -1; slot >= 0)
        append_to = p.pool + slot / p.page_size * p.page_stride + (static_cast<int64_t>(kv_head) * p.page_size + slot % p.page_size) * kDim;
    }
    const NarrowLanes lanes(M);
    const int pieces = head_rows.count / 8;
    NarrowMessages messages(pieces ? pieces : 1);
    const Merged merged(p);
    barrier_wait(barrier(kQkv), 0);
    ResidualLoad residual(p.in, M, H, reinterpret_cast<const float *>(raw + p.at.norm), p.norm_offset);
    cluster_wait();
    wait_for_previous();

    float square[kNarrowMaxRows] = {};
    residual.run(raw + p.at.x, blockIdx.x == 0, square);
    __syncthreads();
    const NarrowSums sums(raw + p.at.sums, head_rows.count, H);
    multiply_held<T>(sums, shared + p.at.x, shared + p.at.qkv, H, head_rows.count, M);
    float *squares = reinterpret_cast<float *>(raw + p.at.squares);
    store_squares(square, M, squares);
    __syncthreads();
    T *own_heads = reinterpret_cast<T *>(raw + p.at.own_heads); // [M, rows of this block]
    for (int r = lanes.first; r < head_rows.count; r += lanes.step)
      own_heads[lanes.m * head_rows.count + r] =
          from_float<T>(sums.at(M, lanes.m, r) * norm_scale(squares, lanes.m, static_cast<float>(H), p.eps) + bias[r]);
    __syncthreads();
    for (; pieces && messages.m < M; messages.advance(pieces))
      if (messages.block < blocks[messages.m]) {
        const uint32_t there = of_block(shared, messages.m * each + messages.block);
        send(there + p.at.heads + (head_rows.first + messages.piece * 8) * 2,
             *reinterpret_cast<const float4 *>(own_heads + messages.m * head_rows.count + messages.piece * 8),
             there + p.at.barriers + kHeads * 8);
      }

    if (active) {
      wait_for_blocks(barrier(kHeads), 0);
      const T *x = reinterpret_cast<const T *>(raw + p.at.heads);
      for (int h = warp; h < group + (has_new ? 2 : 0); h += warps) {
        const T *head = x + h * kDim;
        if (h < group) {
          rotate(p, head, p.q_norm, angles, query[h]);
          continue;
        }
        T *row = fresh[h - group][0];
        if (h == group)
          rotate(p, head, p.k_norm, angles, row);
        else
          for (int i = lane; i < kDim; i += 32)
            row[i] = head[i];
        __syncwarp();
        if (append_to && lane < kDim / 8)
          reinterpret_cast<uint4 *>(append_to + (h - group) * values)[lane] = reinterpret_cast<const uint4 *>(row)[lane];
      }
      __syncthreads();
      attend(p, raw, reinterpret_cast<Step::Query>(*query), ring, fresh, keys, mine, stored, key_of, load);
      __syncthreads();
      send_merged(p, raw, shared, merged, seq * each + index);
    }

    wait_for_blocks(barrier(kParts), 0);
    merge(p, raw, lanes, each);
    barrier_wait(barrier(kOutput), 0);
    __syncthreads();
    const NarrowSums output(raw + p.at.sums, rows.count, group * kDim);
    multiply_held<T>(output, shared + p.at.merged, shared + p.at.output, group * kDim, rows.count, M);
    __syncthreads();
    store_parts(output, lanes, p.parts + static_cast<int64_t>(kv_head) * M * H, output_bias, rows, M, H);
  }

  // A warp's steps; what they came to goes to `merge`.
  template <typename KeyOf, typename Load>
  static __device__ __forceinline__ void attend(const AttentionHalfParams &p, char *raw, Step::Query query, Ring &ring,
                                                const Tile *fresh, const KeyShare &keys, int mine, int stored, KeyOf &&key_of, Load &&load) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= kAttentionWarps)
      return;
    Step work;
    work.begin(query);
    const float scale = score_scale(p.scale, p.softcap);
    for (int step = 0; step < stored; ++step) {
      wait_copies<kStages - 1>();
      __syncwarp();
      const auto &tiles = ring[step % kStages];
      work.step(query, tiles[0], tiles[1], key_of(step), scale, p.softcap,
                [&](int, int key) { return key < keys.past && (p.window == 0 || key > keys.past - p.window); });
      __syncwarp();
      if (step + kStages < stored)
        load(step + kStages);
      commit_copies();
    }
    if (stored < mine) // the new key
      work.step(query, fresh[0], fresh[1], keys.past, scale, p.softcap, [&](int, int key) { return key == keys.past; });
    work.finish();
    float *to = reinterpret_cast<float *>(raw + p.at.merge) + warp * p.group * kLine;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = lane / 4 + i * 8;
      if (r >= p.group)
        continue;
#pragma unroll
      for (int t = 0; t < Step::kDimTiles; ++t)
        *reinterpret_cast<float2 *>(to + r * kLine + t * 8 + lane % 4 * 2) = make_float2(work.o[t][i * 2], work.o[t][i * 2 + 1]);
      if (lane % 4 == 0)
        *reinterpret_cast<float2 *>(to + r * kLine + kDim) = make_float2(work.m[i], work.l[i]);
    }
  }

  static __device__ __forceinline__ void add(float4 &sum, float factor, const float *o) {
    const float4 v = *reinterpret_cast<const float4 *>(o);
    sum.x += factor * v.x, sum.y += factor * v.y, sum.z += factor * v.z, sum.w += factor * v.w;
  }

  // Merges this block's warps and sends it to all blocks, as their `slot`.
  static __device__ __forceinline__ void send_merged(const AttentionHalfParams &p, char *raw, uint32_t shared, const Merged &merged, int slot) {
    const float *parts = reinterpret_cast<const float *>(raw + p.at.merge);
    const int line = p.group * kLine, to = p.at.incoming + slot * incoming_floats(p.group) * 4;
    for (int i = merged.first; i < merged.fours && merged.block < p.cluster; i += blockDim.x) { // once, but for large groups
      const int r = i / (kDim / 4), column = i % (kDim / 4) * 4;
      float2 ml[kAttentionWarps];
      float top = -INFINITY, total = 0;
#pragma unroll
      for (int w = 0; w < kAttentionWarps; ++w) {
        ml[w] = *reinterpret_cast<const float2 *>(parts + w * line + r * kLine + kDim);
        top = fmaxf(top, ml[w].x);
      }
      float4 sum = {};
#pragma unroll
      for (int w = 0; w < kAttentionWarps; ++w) {
        const float factor = ml[w].x == -INFINITY ? 0.0f : exp2f(ml[w].x - top);
        total += factor * ml[w].y;
        add(sum, factor, parts + w * line + r * kLine + column);
      }
      for (int block = merged.block; block < p.cluster; block += merged.step) {
        const uint32_t there = of_block(shared, block);
        send(there + to + i * 16, sum, there + p.at.barriers + kParts * 8);
        if (column == 0)
          send(there + to + (p.group * kDim + r * 2) * 4, make_float2(top, total), there + p.at.barriers + kParts * 8);
      }
    }
  }

  // What came of all keys of all rows, rounded, as the input of the output product.
  static __device__ __forceinline__ void merge(const AttentionHalfParams &p, char *raw, const NarrowLanes &lanes, int each) {
    constexpr int kAtOnce = 4;
    const int floats = incoming_floats(p.group), fours = p.group * (kDim / 4);
    const int count = reinterpret_cast<const int *>(raw + p.at.blocks)[lanes.m];
    const float *parts = reinterpret_cast<const float *>(raw + p.at.incoming) + lanes.m * each * floats;
    for (int i = lanes.first; i < fours; i += lanes.step) {
      const float *ml = parts + p.group * kDim + i / (kDim / 4) * 2;
      float top = -INFINITY, total = 0;
      float4 sum = {};
      for (int first = 0; first < count; first += kAtOnce) {
        float2 next[kAtOnce];
        const float before = top;
#pragma unroll
        for (int b = 0; b < kAtOnce; ++b) {
          next[b] = first + b < count ? *reinterpret_cast<const float2 *>(ml + (first + b) * floats) : make_float2(-INFINITY, 0);
          top = fmaxf(top, next[b].x); // each block has seen a key
        }
        const float keep = exp2f(before - top);
        sum.x *= keep, sum.y *= keep, sum.z *= keep, sum.w *= keep, total *= keep;
#pragma unroll
        for (int b = 0; b < kAtOnce; ++b)
          if (first + b < count) {
            const float factor = exp2f(next[b].x - top);
            total += factor * next[b].y;
            add(sum, factor, parts + (first + b) * floats + i * 4);
          }
      }
      const float scale = count ? 1.0f / total : 0.0f;
      *reinterpret_cast<uint2 *>(raw + p.at.merged + lanes.m * held_pitch(p.group * kDim) + i * 8) =
          make_uint2(pack<T>(sum.x * scale, sum.y * scale), pack<T>(sum.z * scale, sum.w * scale));
    }
  }

  // Places everything in shared memory; how much that is.
  static int place(AttentionHalfParams &p) {
    const NarrowShare head_rows((p.group + 2) * kDim, p.cluster, 0, 8), rows(p.H, p.cluster, 0, 1); // the largest
    const int warps = narrow_warps(p.H);
    NarrowRoom room;
    // What came of keys takes the place of the weights of q, k and v: blocks send it once all have multiplied those.
    p.at.incoming = p.at.qkv = room.take(std::max(head_rows.count * held_pitch(p.H), p.cluster * incoming_floats(p.group) * 4));
    p.at.output = room.take(rows.count * held_pitch(p.group * kDim));
    p.at.norm = room.take(p.H * 4);
    p.at.bias = room.take((head_rows.count + rows.count) * 4);
    p.at.x = room.take(p.M * held_pitch(p.H));
    p.at.sums = room.take(std::max(narrow_sums_bytes(warps, head_rows.count, p.M), narrow_sums_bytes(warps, rows.count, p.M)));
    p.at.squares = room.take(warps * kNarrowMaxRows * 4);
    p.at.heads = room.take((p.group + 2) * kDim * sizeof(T));
    p.at.own_heads = room.take(p.M * head_rows.count * sizeof(T));
    p.at.query = room.take(sizeof(Tile));
    p.at.fresh = room.take(2 * sizeof(Tile));
    p.at.angles = room.take(p.rotary_dim * 4);
    p.at.ring = room.take(kAttentionWarps * sizeof(Ring));
    p.at.merge = room.take(kAttentionWarps * p.group * kLine * 4);
    p.at.merged = room.take(p.M * held_pitch(p.group * kDim));
    p.at.blocks = room.take(kNarrowMaxRows * 4);
    p.at.barriers = room.take(kBarriers * 8);
    return room.bytes();
  }
};

// With the feed-forward's 96 registers, blocks of both fit on a multiprocessor.
__global__ void __maxnreg__(128) attention_half_kernel(const __grid_constant__ AttentionHalfParams p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  AttentionHalf::run(p);
#endif
}

AttentionHalfParams params_of(const NarrowAttention &p, const NarrowShape &shape, int64_t M) {
  AttentionHalfParams params = {};
  params.in = p.in;
  params.norm = p.norm, params.qkv_bias = p.qkv_bias, params.output_bias = p.output_bias;
  params.inv_freq = p.rope.inv_freq, params.q_norm = p.rope.q_norm, params.k_norm = p.rope.k_norm;
  params.qkv = static_cast<const T *>(p.qkv), params.output = static_cast<const T *>(p.output);
  params.positions = p.rope.positions, params.context_lens = p.context_lens, params.page_table = p.page_table;
  params.slots = p.append.slot_mapping;
  params.pool = static_cast<T *>(p.append.pool.base);
  params.parts = p.parts;
  params.page_stride = p.append.pool.page_stride_bytes / static_cast<int64_t>(sizeof(T)), params.page_table_stride = p.page_table_stride;
  params.eps = p.eps, params.norm_offset = p.norm_offset, params.rope_eps = p.rope.eps;
  params.attention_factor = p.rope.attention_factor, params.scale = p.scale, params.softcap = p.softcap;
  params.M = static_cast<int>(M), params.H = static_cast<int>(p.H), params.q_heads = p.rope.q_heads, params.kv_heads = p.rope.kv_heads;
  params.group = p.rope.q_heads / p.rope.kv_heads, params.rotary_dim = p.rope.rotary_dim, params.page_size = p.append.pool.page_size;
  params.window = p.window, params.interleaved = p.rope.interleaved;
  params.cluster = shape.cluster, params.steps = shape.steps;
  return params;
}

} // namespace

NarrowShape narrow_shape(const NarrowAttention &) { return {kNarrowCluster, 0, 4}; }

bool narrow_attention_applies(const NarrowAttention &p) {
  const Rope &r = p.rope;
  const KvPool &pool = p.append.pool;
  if (!narrow_device() || !narrow_residual_fits(p.in, p.norm, p.H) || p.H % 32 != 0 || r.head_dim != kDim ||
      r.q_heads % r.kv_heads != 0 || r.q_heads / r.kv_heads > kDecodeRows || r.kv_heads > kNarrowMaxParts || r.act != DType::bf16 ||
      pool.type != DType::bf16 || pool.kv_heads != r.kv_heads || pool.head_dim != r.head_dim || pool.page_size % kKeys != 0 ||
      pool.page_stride_bytes % 16 != 0)
    return false;
  for (const void *pointer : {p.qkv, p.output, static_cast<const void *>(pool.base)})
    if (reinterpret_cast<uintptr_t>(pointer) % 16 != 0)
      return false;
  AttentionHalfParams params = params_of(p, narrow_shape(p), kNarrowMaxRows);
  return AttentionHalf::place(params) <= narrow_room();
}

void narrow_attention(const NarrowAttention &p, const NarrowShape &shape, cudaStream_t stream) {
  AttentionHalfParams params = params_of(p, shape, p.M);
  const int bytes = AttentionHalf::place(params);
  prepare_narrow<attention_half_kernel>();
  launch_cluster(attention_half_kernel, dim3(static_cast<unsigned>(shape.cluster * p.rope.kv_heads)),
                 dim3(static_cast<unsigned>(narrow_warps(p.H) * 32)), static_cast<size_t>(bytes), static_cast<unsigned>(shape.cluster), stream,
                 params);
}

// The residual and its parts, for those who know of no parts.
static __global__ void add_parts_kernel(NarrowResidual in, int M, int H) {
  let_next_start();
  wait_for_previous();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), columns = H / 8, m = i / columns;
  if (m >= M)
    return;
  Eight<T> sum;
  ResidualColumns(in, H, m, (i - m * columns) * 8).load(in.count, static_cast<int64_t>(M) * H, sum.v);
  sum.store(static_cast<T *>(in.sum) + m * in.ld_sum + (i - m * columns) * 8);
}

void narrow_add_parts(const NarrowResidual &in, int64_t M, int64_t H, cudaStream_t stream) {
  launch(add_parts_kernel, dim3(static_cast<unsigned>(ceil_div(M * H / 8, 128))), dim3(128), 0, stream, in, static_cast<int>(M),
         static_cast<int>(H));
}

} // namespace llmrt::cuda
