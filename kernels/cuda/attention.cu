// Paged causal attention on tensor cores (after FlashAttention-2, Dao 2023): the entry, prefill, and the plain kernel.
//
// The query heads that read one KV head are packed into the row dimension: row = token * group + head. A prefill block
// takes 64 such rows of one sequence, 16 a warp, and walks the keys in tiles of 64. Keys and values come from pages through
// shared memory, two tiles in flight. Sequences of at most 16 rows go to attention_decode.cu.
#include "kernels/cuda/attention.cuh"

#include <type_traits>
#include <utility>

namespace llmrt::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kTile = 64; // keys of a tile

// kDim: head_dim rounded up to 16. kChunk: elements copied at once (8, or 4 where rows are only 8-byte aligned).
template <typename T, int kDim, int kChunk> struct Prefill {
  static constexpr int kStride = kDim + 8; // padded rows: ldmatrix meets no bank conflict
  static constexpr int kBlockRows = kWarps * 16;
  static constexpr int kKeyTiles = kTile / 8, kDimTiles = kDim / 8, kDimSteps = kDim / 16;
  static constexpr bool kQueryInRegisters = kDim <= 128;

  struct Shared {
    T q[kBlockRows][kStride];
    T k[2][kTile][kStride];
    T v[2][kTile][kStride];
  };
  static constexpr size_t kBytes = sizeof(Shared);

  static __device__ void run(const AttentionParams &p) {
    extern __shared__ __align__(16) char raw[];
    Shared &shared = *reinterpret_cast<Shared *>(raw);
    let_next_start();
    wait_for_previous();

    const int kv_head = blockIdx.y, seq = blockIdx.z;
    const int start = p.seq_starts[seq], queries = p.seq_starts[seq + 1] - start, context = p.context_lens[seq];
    int first_head, group;
    find_group(p, kv_head, first_head, group);
    // The last rows see the most keys and start first.
    const int rows = queries * group, row0 = (gridDim.x - 1 - blockIdx.x) * kBlockRows;
    if (rows <= kDecodeRows || row0 >= rows || context == 0)
      return;

    // Keys that any row of the block may see.
    const int past = context - queries;
    const int last_token = min(queries - 1, (row0 + kBlockRows - 1) / group), first_token = row0 / group;
    const int begin = p.window ? max(0, past + first_token - p.window + 1) / kTile * kTile : 0;
    const int end = past + last_token + 1;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp * 16;
    load_query(p, shared, start, first_head, group, rows, row0);

    float o[kDimTiles][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0};
    uint32_t qf[kQueryInRegisters ? kDimSteps : 1][4];
    // Positions of this lane's two rows; rows past the end see nothing.
    int position[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row0 + warp_row + lane / 4 + i * 8;
      position[i] = row < rows ? past + row / group : -1;
    }

    if (begin < end)
      load_tile(p, shared, 0, seq, kv_head, begin, end);
    commit_copies();
    int stage = 0;
    bool first = true;
    for (int key0 = begin; key0 < end; key0 += kTile, stage ^= 1) {
      if (key0 + kTile < end)
        load_tile(p, shared, stage ^ 1, seq, kv_head, key0 + kTile, end);
      commit_copies();
      wait_copies<1>();
      __syncthreads();
      if (kQueryInRegisters && first) {
#pragma unroll
        for (int s = 0; s < kDimSteps; ++s)
          load_matrices(qf[kQueryInRegisters ? s : 0], &shared.q[warp_row + lane % 16][s * 16 + lane / 16 * 8]);
        first = false;
      }

      // Scores: 16 rows × kTile keys.
      float s[kKeyTiles][4] = {};
#pragma unroll
      for (int d = 0; d < kDimSteps; ++d) {
        uint32_t q[4];
        if constexpr (kQueryInRegisters) {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            q[i] = qf[d][i];
        } else {
          load_matrices(q, &shared.q[warp_row + lane % 16][d * 16 + lane / 16 * 8]);
        }
#pragma unroll
        for (int t = 0; t < kKeyTiles; t += 2) {
          uint32_t k[4]; // keys t*8 … +15, dims d*16 … +15
          load_matrices(k, &shared.k[stage][t * 8 + lane % 8 + lane / 16 * 8][d * 16 + lane / 8 % 2 * 8]);
          mma<T>(s[t], q, k[0], k[1]);
          mma<T>(s[t + 1], q, k[2], k[3]);
        }
      }

      // Mask and online softmax, base 2.
      float tile_max[2] = {-INFINITY, -INFINITY};
#pragma unroll
      for (int t = 0; t < kKeyTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = key0 + t * 8 + lane % 4 * 2 + i % 2, row = i / 2;
          float x = s[t][i] * p.scale;
          if (p.softcap > 0)
            x = p.softcap * tanhf(x / p.softcap);
          const bool seen = key <= position[row] && key < end && (p.window == 0 || key > position[row] - p.window);
          s[t][i] = seen ? x * kLog2e : -INFINITY;
          tile_max[row] = fmaxf(tile_max[row], s[t][i]);
        }
      float factor[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        tile_max[i] = fmaxf(tile_max[i], __shfl_xor_sync(0xffffffffu, tile_max[i], 1));
        tile_max[i] = fmaxf(tile_max[i], __shfl_xor_sync(0xffffffffu, tile_max[i], 2));
        const float next = fmaxf(m[i], tile_max[i]);
        factor[i] = next == -INFINITY ? 1.0f : exp2f(m[i] - next);
        m[i] = next;
        l[i] *= factor[i];
      }
#pragma unroll
      for (int t = 0; t < kKeyTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          s[t][i] = m[i / 2] == -INFINITY ? 0.0f : exp2f(s[t][i] - m[i / 2]);
          l[i / 2] += s[t][i];
        }
#pragma unroll
      for (int t = 0; t < kDimTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          o[t][i] *= factor[i / 2];

      // Weighted values.
#pragma unroll
      for (int t = 0; t < kKeyTiles; t += 2) {
        const uint32_t a[4] = {pack<T>(s[t][0], s[t][1]), pack<T>(s[t][2], s[t][3]), pack<T>(s[t + 1][0], s[t + 1][1]),
                               pack<T>(s[t + 1][2], s[t + 1][3])};
#pragma unroll
        for (int d = 0; d < kDimTiles; d += 2) {
          uint32_t v[4]; // keys t*8 … +15, dims d*8 … +15
          load_matrices_transposed(v, &shared.v[stage][t * 8 + lane % 16][d * 8 + lane / 16 * 8]);
          mma<T>(o[d], a, v[0], v[1]);
          mma<T>(o[d + 1], a, v[2], v[3]);
        }
      }
      __syncthreads();
    }
    wait_copies<0>();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      l[i] += __shfl_xor_sync(0xffffffffu, l[i], 1);
      l[i] += __shfl_xor_sync(0xffffffffu, l[i], 2);
    }
    write(p, o, l, start, first_head, group, rows, row0 + warp_row);
  }

  static __device__ void load_query(const AttentionParams &p, Shared &shared, int start, int first_head, int group, int rows,
                                    int row0) {
    for (int i = threadIdx.x; i < kBlockRows * kDim; i += kWarps * 32) {
      const int r = i / kDim, d = i % kDim, row = row0 + r;
      T value = from_float<T>(0.0f);
      if (row < rows && d < p.head_dim)
        value = static_cast<const T *>(p.q)[(start + row / group) * p.ld_q +
                                            static_cast<int64_t>(first_head + row % group) * p.head_dim + d];
      shared.q[r][d] = value;
    }
  }

  static __device__ void load_tile(const AttentionParams &p, Shared &shared, int stage, int seq, int kv_head, int key0, int end) {
    constexpr int kChunks = kDim / kChunk;
    const T *pool = static_cast<const T *>(p.pool);
    const int64_t values = static_cast<int64_t>(p.kv_heads) * p.page_size * p.head_dim;
    for (int i = threadIdx.x; i < kTile * kChunks; i += kWarps * 32) {
      const int r = i / kChunks, c = i % kChunks * kChunk, key = key0 + r;
      const bool valid = key < end && c < p.head_dim;
      const T *from = pool;
      if (valid) {
        const int64_t page = p.page_table[seq * p.page_table_stride + key / p.page_size];
        from = pool + page * p.page_stride +
               (static_cast<int64_t>(kv_head) * p.page_size + key % p.page_size) * p.head_dim + c;
      }
      copy_async<kChunk * 2>(&shared.k[stage][r][c], from, valid);
      copy_async<kChunk * 2>(&shared.v[stage][r][c], from + (valid ? values : 0), valid);
    }
  }

  static __device__ T *out_row(const AttentionParams &p, int start, int first_head, int group, int row) {
    return static_cast<T *>(p.out) + (start + row / group) * p.ld_out +
           static_cast<int64_t>(first_head + row % group) * p.head_dim;
  }

  static __device__ void write(const AttentionParams &p, float (&o)[kDimTiles][4], float (&l)[2], int start,
                                       int first_head, int group, int rows, int row0) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row0 + lane / 4 + i * 8;
      if (row >= rows)
        continue;
      T *to = out_row(p, start, first_head, group, row);
      const float scale = 1.0f / l[i];
#pragma unroll
      for (int t = 0; t < kDimTiles; ++t) {
        const int d = t * 8 + lane % 4 * 2;
        if (d < p.head_dim)
          *reinterpret_cast<uint32_t *>(to + d) = pack<T>(o[t][i * 2] * scale, o[t][i * 2 + 1] * scale);
      }
    }
  }
};

template <typename T, int kDim, int kChunk>
__global__ void __launch_bounds__(kWarps * 32) prefill_kernel(AttentionParams p) {
  Prefill<T, kDim, kChunk>::run(p);
}

// f32, mixes of types, and what the others do not take: a warp a (token, query head), keys one by one. Not for speed.
template <typename A, typename P>
__global__ void plain_attention_kernel(AttentionParams p, int S) {
  let_next_start();
  wait_for_previous();
  const int lane = threadIdx.x % 32, head = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32, token = blockIdx.x;
  if (head >= p.q_heads)
    return;
  int seq = 0;
  while (seq + 1 < S && p.seq_starts[seq + 1] <= token)
    ++seq;
  const int context = p.context_lens[seq];
  if (context == 0 || token >= p.seq_starts[S])
    return;
  const int position = context - (p.seq_starts[seq + 1] - token);
  constexpr int kEach = 8; // head_dim up to 256
  float q[kEach], o[kEach] = {}, m = -INFINITY, l = 0;
  const A *query = static_cast<const A *>(p.q) + token * p.ld_q + static_cast<int64_t>(head) * p.head_dim;
  for (int e = 0; e < kEach; ++e)
    q[e] = lane + e * 32 < p.head_dim ? to_float(query[lane + e * 32]) : 0.0f;
  const int kv_head = p.kv_head_of_q[head];
  const int64_t values = static_cast<int64_t>(p.kv_heads) * p.page_size * p.head_dim;
  for (int key = p.window ? max(0, position - p.window + 1) : 0; key <= position; ++key) {
    const int64_t page = p.page_table[seq * p.page_table_stride + key / p.page_size];
    const P *k = static_cast<const P *>(p.pool) + page * p.page_stride +
                 (static_cast<int64_t>(kv_head) * p.page_size + key % p.page_size) * p.head_dim;
    float dot = 0;
    for (int e = 0; e < kEach; ++e)
      if (lane + e * 32 < p.head_dim)
        dot += q[e] * to_float(k[lane + e * 32]);
    float x = warp_sum(dot) * p.scale;
    if (p.softcap > 0)
      x = p.softcap * tanhf(x / p.softcap);
    const float next = fmaxf(m, x), keep = expf(m - next), take = expf(x - next);
    l = l * keep + take;
    m = next;
    for (int e = 0; e < kEach; ++e)
      if (lane + e * 32 < p.head_dim)
        o[e] = o[e] * keep + take * to_float(k[values + lane + e * 32]);
  }
  A *to = static_cast<A *>(p.out) + token * p.ld_out + static_cast<int64_t>(head) * p.head_dim;
  for (int e = 0; e < kEach; ++e)
    if (lane + e * 32 < p.head_dim)
      to[lane + e * 32] = from_float<A>(o[e] / l);
}

template <typename T, int kDim, int kChunk> void run(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  using Kernel = Prefill<T, kDim, kChunk>;
  allow_shared_memory<prefill_kernel<T, kDim, kChunk>>();
  const int64_t blocks = ceil_div(static_cast<int64_t>(a.max_query) * a.max_group, Kernel::kBlockRows);
  launch(prefill_kernel<T, kDim, kChunk>,
         dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(p.kv_heads), static_cast<unsigned>(a.S)), dim3(kWarps * 32),
         Kernel::kBytes, stream, p);
}

template <typename T> void prefill(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  with_head_dim(p.head_dim, [&](auto dim, auto chunk) { run<T, decltype(dim)::value, decltype(chunk)::value>(a, p, stream); });
}

template <typename T> void run(const Attention &a, const AttentionParams &p, cudaStream_t stream) {
  if (static_cast<int64_t>(a.max_query) * a.max_group > kDecodeRows && !hopper_prefill<T>(a, p, stream))
    prefill<T>(a, p, stream);
  if ((a.S > 1 || a.max_query <= kDecodeRows) && !balanced_decode<T>(a, p, stream)) // a group has at least one head
    decode_attention<T>(a, p, stream);
}

// Whether the current device has the shared memory that large heads need: 165 KiB for 256, which an H100 has and an A100 has not.
bool tensor_cores_take(int head_dim) {
  size_t bytes = decode_shared_bytes(head_dim);
  with_head_dim(head_dim, [&](auto dim, auto chunk) {
    constexpr size_t kPrefill = Prefill<__half, decltype(dim)::value, decltype(chunk)::value>::kBytes;
    bytes = kPrefill > bytes ? kPrefill : bytes;
  });
  return head_dim % 4 == 0 && bytes <= device_limits().shared_per_block;
}

} // namespace

void attention(const Attention &a, cudaStream_t stream) {
  if (a.T <= 0 || a.S <= 0)
    return;
  AttentionParams p = {};
  p.out = a.out, p.ld_out = a.ld_out, p.q = a.q, p.ld_q = a.ld_q;
  p.pool = a.pool.base;
  p.page_stride = a.pool.page_stride_bytes / static_cast<int64_t>(dtype_bytes(a.pool.type));
  p.kv_heads = a.pool.kv_heads, p.page_size = a.pool.page_size, p.head_dim = a.pool.head_dim, p.q_heads = a.q_heads;
  p.kv_head_of_q = a.kv_head_of_q;
  p.seq_starts = a.seq_starts, p.context_lens = a.context_lens, p.page_table = a.page_table;
  p.page_table_stride = a.page_table_stride;
  p.scale = a.scale, p.softcap = a.softcap, p.window = a.window;
  p.partial = static_cast<float *>(a.workspace) + kAttentionCounters;
  p.page_shift = -1;
  for (int shift = 0; shift < 31; ++shift)
    if (p.page_size == 1 << shift)
      p.page_shift = shift;
  p.wide_q = reinterpret_cast<uintptr_t>(a.q) % 16 == 0 && a.ld_q % 8 == 0 && p.head_dim % 8 == 0;
  if (a.act == a.pool.type && a.act != DType::f32 && tensor_cores_take(p.head_dim))
    return a.act == DType::bf16 ? run<__nv_bfloat16>(a, p, stream) : run<__half>(a, p, stream);
  with_type(a.act, [&](auto act) {
    with_type(a.pool.type, [&](auto pool) {
      launch(plain_attention_kernel<decltype(act), decltype(pool)>,
             dim3(static_cast<unsigned>(a.T), static_cast<unsigned>(ceil_div(a.q_heads, 4))), dim3(128), 0, stream, p,
             a.S);
    });
  });
}

size_t attention_workspace_bytes(int64_t, int max_seqs, int q_heads, int head_dim) {
  const int64_t parts = attention_parts(max_seqs);
  return static_cast<size_t>(kAttentionCounters + parts * q_heads * kDecodeRows * (head_dim + 2)) * sizeof(float);
}

} // namespace llmrt::cuda
