// Decode attention (after Flash-Decoding): sequences with few new tokens, bound by reading keys and values.
//
// All query heads of one KV head are one tile of up to 16 rows. A block takes a sequence, a KV head and a share of the keys;
// each of its four warps walks 16 keys at a time with a ring of shared memory of its own, so that no warp waits for another
// and the loads in flight do not depend on registers. The blocks of a cluster share one sequence's keys and merge through
// each other's shared memory; devices without clusters, and few heads with long contexts, merge in a second kernel.
#include "kernels/cuda/attention_step.cuh"

#include <cooperative_groups.h>

namespace llmrt::cuda {

namespace {

constexpr int kWarps = 4, kKeys = 16; // keys of a step
constexpr int kMostBlocks = 16; // of a cluster

// kDim: head_dim rounded up to 16. kChunk: elements copied at once (8, or 4 where rows are only 8-byte aligned).
// kPaged: the keys of a step lie in one page. kStages: steps in flight a warp.
template <typename T, int kDim, int kChunk, bool kPaged, int kStages> struct Decode {
  static constexpr int kBlocks = kDim > 128 ? 1 : kStages == 2 ? 3 : 2; // of a multiprocessor, for its registers
  using Step = DecodeStep<T, kDim>;
  static constexpr int kStride = Step::kStride, kDimTiles = Step::kDimTiles;

  struct Shared {
    T q[kDecodeRows][kStride];
    T ring[kWarps][kStages][2][kKeys][kStride]; // keys, values
  };
  // The warps meet here, on top of the ring; then the blocks of a cluster, each of which is sent its share of the elements.
  struct Merge {
    float o[kWarps][kDecodeRows][kDim + 1];
    float m[kWarps][kDecodeRows], l[kWarps][kDecodeRows];
    float all_m[kMostBlocks][kDecodeRows], all_l[kMostBlocks][kDecodeRows];
    float all_o[kDecodeRows * kDim + kMostBlocks];
  };
  static constexpr size_t kBytes = sizeof(Shared) > sizeof(Merge) ? sizeof(Shared) : sizeof(Merge);

  static __device__ void run(const AttentionParams &p) {
    extern __shared__ __align__(16) char raw[];
    Shared &shared = *reinterpret_cast<Shared *>(raw);
    let_next_start();

    const int split = blockIdx.x, kv_head = blockIdx.y, seq = blockIdx.z;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int start = p.seq_starts[seq], queries = p.seq_starts[seq + 1] - start, context = p.context_lens[seq];
    int first_head, group;
    find_group(p, kv_head, first_head, group);
    const int rows = queries * group;
    if (rows > kDecodeRows || rows <= 0 || context == 0) {
      wait_for_previous(); // whoever waits for this kernel waits for those before it
      return;
    }

    // Steps of this block: an even share, but at least one a warp.
    const int past = context - queries, end = context;
    const int begin = p.window ? max(0, past - p.window + 1) / kKeys * kKeys : 0;
    const int steps = (end - begin + kKeys - 1) / kKeys;
    const int share = max(kWarps, (steps + p.splits - 1) / p.splits);
    const int first = split * share + warp, last = min(steps, split * share + share);
    const int mine = first < last ? (last - first + kWarps - 1) / kWarps : 0;

    const int32_t *pages = p.page_table + seq * p.page_table_stride;
    int page_ids = 0, page_base = -32; // lane i: the page of this warp's step page_base + i
    auto load = [&](int step) {
      const int key0 = begin + (first + step * kWarps) * kKeys;
      const T *block = static_cast<const T *>(p.pool);
      if constexpr (kPaged) {
        if (step >= page_base + 32) {
          page_base = step;
          const int key = begin + (first + (step + lane) * kWarps) * kKeys;
          page_ids = step + lane < mine ? pages[key / p.page_size] : 0;
        }
        const int64_t page = __shfl_sync(0xffffffffu, page_ids, step - page_base);
        block += page * p.page_stride + static_cast<int64_t>(kv_head * p.page_size + key0 % p.page_size) * p.head_dim;
      }
      copy(p, shared.ring[warp][step % kStages], block, pages, kv_head, key0, end);
    };
    // Keys of earlier steps are on their way before the previous kernel has ended.
    auto early = [&](int step) { return step < mine && begin + (first + step * kWarps + 1) * kKeys <= past; };
#pragma unroll
    for (int s = 0; s < kStages; ++s)
      if (early(s))
        load(s);
    wait_for_previous();
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      if (s < mine && !early(s))
        load(s);
      commit_copies();
    }
    load_query(p, shared, start, first_head, group, rows);
    __syncthreads();

    Step work;
    work.begin(shared.q);
    int position[2]; // of this lane's two rows; rows past the end see nothing
#pragma unroll
    for (int i = 0; i < 2; ++i)
      position[i] = lane / 4 + i * 8 < rows ? past + (lane / 4 + i * 8) / group : -1;
    const float scale = score_scale(p.scale, p.softcap);

    for (int step = 0; step < mine; ++step) {
      wait_copies<kStages - 1>();
      __syncwarp();
      const auto &keys_and_values = shared.ring[warp][step % kStages];
      work.step(shared.q, keys_and_values[0], keys_and_values[1], begin + (first + step * kWarps) * kKeys, scale, p.softcap,
                [&](int i, int key) { return key <= position[i] && (p.window == 0 || key > position[i] - p.window); });
      __syncwarp();
      if (step + kStages < mine)
        load(step + kStages);
      commit_copies();
    }
    wait_copies<0>();
    work.finish();
    merge(p, raw, work.o, work.m, work.l, seq, split, start, first_head, group, rows);
  }

  static __device__ void load_query(const AttentionParams &p, Shared &shared, int start, int first_head, int group, int rows) {
    if (p.wide_q) {
      for (int i = threadIdx.x; i < kDecodeRows * kDim / 8; i += kWarps * 32) {
        const int r = i / (kDim / 8), d = i % (kDim / 8) * 8;
        uint4 value = make_uint4(0, 0, 0, 0);
        if (r < rows && d < p.head_dim)
          value = *reinterpret_cast<const uint4 *>(static_cast<const T *>(p.q) + (start + r / group) * p.ld_q +
                                                   static_cast<int64_t>(first_head + r % group) * p.head_dim + d);
        *reinterpret_cast<uint4 *>(&shared.q[r][d]) = value;
      }
      return;
    }
    for (int i = threadIdx.x; i < kDecodeRows * kDim; i += kWarps * 32) {
      const int r = i / kDim, d = i % kDim;
      T value = from_float<T>(0.0f);
      if (r < rows && d < p.head_dim)
        value = static_cast<const T *>(
            p.q)[(start + r / group) * p.ld_q + static_cast<int64_t>(first_head + r % group) * p.head_dim + d];
      shared.q[r][d] = value;
    }
  }

  // Keys key0 … +15 and their values; zeros from `end` on. `block` is the first key's row where kPaged.
  static __device__ __forceinline__ void copy(const AttentionParams &p, T (&to)[2][kKeys][kStride], const T *block,
                                              const int32_t *pages, int kv_head, int key0, int end) {
    constexpr int kChunks = kDim / kChunk;
    const int64_t values = static_cast<int64_t>(p.kv_heads) * p.page_size * p.head_dim;
    const int lane = threadIdx.x % 32;
    if constexpr (kPaged && 32 % kChunks == 0) {
      // Whole steps of unpadded rows are contiguous.
      if (p.head_dim == kDim && key0 + kKeys <= end) {
        const T *from = block + lane * kChunk;
        const int r = lane / kChunks, c = lane % kChunks * kChunk;
#pragma unroll
        for (int j = 0; j < kKeys * kChunks / 32; ++j) {
          copy_async<kChunk * 2>(&to[0][r + j * (32 / kChunks)][c], from + j * 32 * kChunk, true);
          copy_async<kChunk * 2>(&to[1][r + j * (32 / kChunks)][c], from + values + j * 32 * kChunk, true);
        }
        return;
      }
    }
#pragma unroll
    for (int j = 0; j < (kKeys * kChunks + 31) / 32; ++j) {
      const int i = lane + j * 32, r = i / kChunks, c = i % kChunks * kChunk;
      if (kKeys * kChunks % 32 != 0 && r >= kKeys)
        break;
      const bool valid = key0 + r < end && c < p.head_dim;
      const T *from = static_cast<const T *>(p.pool);
      if constexpr (kPaged) {
        from = valid ? block + r * p.head_dim + c : from;
      } else if (valid) {
        const int64_t page = pages[(key0 + r) / p.page_size];
        from += page * p.page_stride +
                (static_cast<int64_t>(kv_head) * p.page_size + (key0 + r) % p.page_size) * p.head_dim + c;
      }
      copy_async<kChunk * 2>(&to[0][r][c], from, valid);
      copy_async<kChunk * 2>(&to[1][r][c], from + (valid ? values : 0), valid);
    }
  }

  // The warps' results, merged; then those of the splits, or one split's part.
  static __device__ void merge(const AttentionParams &p, char *raw, float (&o)[kDimTiles][4], float (&m)[2], float (&l)[2],
                               int seq, int split, int start, int first_head, int group, int rows) {
    Merge &merge = *reinterpret_cast<Merge *>(raw);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool clustered = p.splits > 1 && p.clustered;
    __syncthreads();
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    auto cluster = cooperative_groups::this_cluster();
    if (clustered)
      cluster.sync(); // from here on blocks write over each other's rings (racecheck: test/unit/cuda/cluster_after_copy.cu)
#endif
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = lane / 4 + i * 8;
      if (r >= rows)
        continue;
      if (lane % 4 == 0)
        merge.m[warp][r] = m[i], merge.l[warp][r] = l[i];
#pragma unroll
      for (int t = 0; t < kDimTiles; ++t) {
        merge.o[warp][r][t * 8 + lane % 4 * 2] = o[t][i * 2];
        merge.o[warp][r][t * 8 + lane % 4 * 2 + 1] = o[t][i * 2 + 1];
      }
    }
    __syncthreads();
    T *out = static_cast<T *>(p.out);
    auto at = [&](int r, int d) {
      return (start + r / group) * p.ld_out + static_cast<int64_t>(first_head + r % group) * p.head_dim + d;
    };
    const int elements = rows * kDim, share = (elements + p.splits - 1) / p.splits; // elements that a block merges
    for (int i = threadIdx.x; i < elements; i += kWarps * 32) {
      const int r = i / kDim, d = i % kDim;
      float top = -INFINITY;
#pragma unroll
      for (int w = 0; w < kWarps; ++w)
        top = fmaxf(top, merge.m[w][r]);
      float sum = 0, total = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const float f = merge.m[w][r] == -INFINITY ? 0.0f : exp2f(merge.m[w][r] - top);
        sum += f * merge.o[w][r][d];
        total += f * merge.l[w][r];
      }
      if (clustered) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        *cluster.map_shared_rank(&merge.all_o[split * share + i % share], i / share) = sum;
        for (int to = d; to < p.splits; to += kDim) {
          *cluster.map_shared_rank(&merge.all_m[split][r], to) = top;
          *cluster.map_shared_rank(&merge.all_l[split][r], to) = total;
        }
#endif
      } else if (d >= p.head_dim) {
        continue;
      } else if (p.splits == 1) {
        out[at(r, d)] = from_float<T>(sum / total);
      } else {
        float *part = p.partial + ((static_cast<int64_t>(seq * p.splits + split) * p.q_heads + first_head) * kDecodeRows +
                                   r) * (p.head_dim + 2);
        part[d] = sum;
        if (d == 0)
          part[p.head_dim] = top, part[p.head_dim + 1] = total;
      }
    }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if (!clustered)
      return;
    cluster.sync();
    for (int i = threadIdx.x; i < share && split * share + i < elements; i += kWarps * 32) {
      const int r = (split * share + i) / kDim, d = (split * share + i) % kDim;
      float top = -INFINITY, sum = 0, total = 0;
      for (int s = 0; s < p.splits; ++s)
        top = fmaxf(top, merge.all_m[s][r]);
      for (int s = 0; s < p.splits; ++s) {
        const float f = merge.all_m[s][r] == -INFINITY ? 0.0f : exp2f(merge.all_m[s][r] - top);
        sum += f * merge.all_o[s * share + i];
        total += f * merge.all_l[s][r];
      }
      if (d < p.head_dim)
        out[at(r, d)] = from_float<T>(sum / total);
    }
#endif
  }
};

template <typename T, int kDim, int kChunk, bool kPaged, int kStages>
__global__ void __launch_bounds__(kWarps * 32, (Decode<T, kDim, kChunk, kPaged, kStages>::kBlocks))
    decode_kernel(AttentionParams p) {
  Decode<T, kDim, kChunk, kPaged, kStages>::run(p);
}

// Merges the splits of one sequence and KV head, in order. Rows are (token, head of the group).
template <typename T> __global__ void merge_kernel(AttentionParams p) {
  let_next_start();
  wait_for_previous();
  const int seq = blockIdx.y, kv_head = blockIdx.x;
  const int start = p.seq_starts[seq], queries = p.seq_starts[seq + 1] - start, context = p.context_lens[seq];
  int first_head, group;
  find_group(p, kv_head, first_head, group);
  const int rows = queries * group;
  if (rows > kDecodeRows || rows <= 0 || context == 0)
    return;
  for (int i = threadIdx.x; i < rows * p.head_dim; i += blockDim.x) {
    const int r = i / p.head_dim, d = i % p.head_dim;
    const int64_t step = static_cast<int64_t>(p.q_heads) * kDecodeRows * (p.head_dim + 2);
    const float *part = p.partial + ((static_cast<int64_t>(seq) * p.splits * p.q_heads + first_head) * kDecodeRows + r) *
                                        (p.head_dim + 2);
    float top = -INFINITY, sum = 0, total = 0;
    for (int s = 0; s < p.splits; ++s, part += step) {
      const float m = part[p.head_dim];
      if (m == -INFINITY)
        continue;
      const float next = fmaxf(top, m), keep = exp2f(top - next), take = exp2f(m - next);
      sum = sum * keep + part[d] * take;
      total = total * keep + part[p.head_dim + 1] * take;
      top = next;
    }
    static_cast<T *>(p.out)[(start + r / group) * p.ld_out + static_cast<int64_t>(first_head + r % group) * p.head_dim +
                            d] = from_float<T>(sum / total);
  }
}

// Blocks of a sequence and KV head, `slots` of which run on a multiprocessor at once: as few keys a block and rounds of
// blocks as together take the least time, where the start of a block costs as much as 200 keys. Clusters, of up to 8 or 16
// blocks, merge in place but leave a quarter of the slots unused; a second kernel merges only where few heads read long
// contexts.
int choose_splits(const Attention &a, int kv_heads, int slots, bool &clustered) {
  const DeviceLimits &device = device_limits();
  const int64_t pairs = static_cast<int64_t>(a.S) * kv_heads, all_slots = static_cast<int64_t>(slots) * device.sms;
  const int64_t context = a.window > 0 && a.window < a.max_context ? a.window : a.max_context;
  const int64_t useful = ceil_div(context, kWarps * kKeys);
  clustered = device.major >= 9 && !(pairs * 64 < device.sms && context > 4096);
  int64_t best = 1, best_time = 0;
  for (int64_t splits = 1; splits <= (clustered ? device.most_cluster : kMaxSplits) && splits <= useful; ++splits) {
    if (clustered && splits > 8 && splits < kMostBlocks)
      continue;
    if (!clustered && splits * a.S > attention_parts(a.S))
      break;
    const int64_t at_once = splits > 1 && clustered ? all_slots * 3 / 4 : all_slots;
    const int64_t time = ceil_div(pairs * splits, at_once) * (ceil_div(context, splits) + 200);
    if (splits == 1 || time < best_time)
      best = splits, best_time = time;
  }
  return static_cast<int>(best);
}

template <typename T, int kDim, int kChunk, bool kPaged, int kStages>
void start(const Attention &a, const AttentionParams &p, bool even, cudaStream_t stream) {
  const DeviceLimits &device = device_limits();
  size_t bytes = Decode<T, kDim, kChunk, kPaged, kStages>::kBytes;
  if (even) {
    // Blocks of one multiprocessor share its bandwidth: where few run at once, none may take more of them than another.
    const size_t each = static_cast<size_t>(ceil_div(static_cast<int64_t>(a.S) * p.kv_heads, device.sms));
    const size_t wanted = device.shared_per_sm / (each + 1);
    bytes = wanted > bytes && wanted <= device.shared_per_block ? wanted : bytes;
  }
  auto kernel = decode_kernel<T, kDim, kChunk, kPaged, kStages>;
  allow_shared_memory<decode_kernel<T, kDim, kChunk, kPaged, kStages>>();
  if (p.clustered && p.splits > 8)
    require(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "clusters");
  launch_cluster(kernel, dim3(static_cast<unsigned>(p.splits), static_cast<unsigned>(p.kv_heads), static_cast<unsigned>(a.S)),
                 dim3(kWarps * 32), bytes, p.clustered ? static_cast<unsigned>(p.splits) : 1u, stream, p);
  if (p.splits > 1 && !p.clustered)
    launch(merge_kernel<T>, dim3(static_cast<unsigned>(p.kv_heads), static_cast<unsigned>(a.S)), dim3(256), 0, stream, p);
}

template <typename T, int kDim, int kChunk, bool kPaged>
void run(const Attention &a, AttentionParams p, cudaStream_t stream) {
  const DeviceLimits &device = device_limits();
  const int slots = static_cast<int>(device.shared_per_sm / (Decode<T, kDim, kChunk, kPaged, 2>::kBytes + 1024));
  p.splits = choose_splits(a, p.kv_heads, slots < 1 ? 1 : slots, p.clustered);
  // Few blocks that share no sequence: more in flight each rather than more blocks.
  if constexpr (kDim <= 128 && kPaged)
    if (p.splits == 1 && static_cast<int64_t>(a.S) * p.kv_heads < 6 * device.sms &&
        Decode<T, kDim, kChunk, kPaged, 3>::kBytes <= device.shared_per_block)
      return start<T, kDim, kChunk, kPaged, 3>(a, p, true, stream);
  start<T, kDim, kChunk, kPaged, 2>(a, p, false, stream);
}

template <typename T, int kDim, int kChunk> void run(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  if (p.page_size % kKeys == 0)
    run<T, kDim, kChunk, true>(a, p, stream);
  else
    run<T, kDim, kChunk, false>(a, p, stream);
}

} // namespace

size_t decode_shared_bytes(int head_dim) {
  size_t bytes = 0;
  with_head_dim(head_dim, [&](auto dim, auto chunk) {
    bytes = Decode<__half, decltype(dim)::value, decltype(chunk)::value, true, 2>::kBytes;
  });
  return bytes;
}

template <typename T> void decode_attention(const Attention &a, AttentionParams p, cudaStream_t stream) {
  with_head_dim(p.head_dim, [&](auto dim, auto chunk) { run<T, decltype(dim)::value, decltype(chunk)::value>(a, p, stream); });
}
template void decode_attention<__nv_bfloat16>(const Attention &, AttentionParams, cudaStream_t);
template void decode_attention<__half>(const Attention &, AttentionParams, cudaStream_t);

} // namespace llmrt::cuda
