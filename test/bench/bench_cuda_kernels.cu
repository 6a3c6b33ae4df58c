// CUDA kernels against their floors, in one run: bytes over the read bandwidth measured at the start. Each line is the
// median of graph replays over rotating buffers larger than the L2 cache.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linear_shape.h"
#include "kernels/cuda/narrow.h"
#include "test/bench/bench_gated.h"
#include "test/bench/bench_wide.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

using namespace llmrt::cuda;

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if (cudaError_t status = (call); status != cudaSuccess) {                                                          \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));                                             \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

__global__ void read_kernel(const uint4 *data, size_t n, uint32_t *out) {
  uint32_t sum = 0;
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    const uint4 a = data[i], b = data[i + step], c = data[i + 2 * step], d = data[i + 3 * step];
    sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
  }
  for (; i < n; i += step)
    sum ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
  if (sum == 0x12345678)
    *out = sum;
}

__global__ void fill_kernel(__nv_bfloat16 *data, size_t n, uint32_t seed) {
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    uint32_t x = static_cast<uint32_t>(i) * 2654435761u + seed;
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15;
    data[i] = __float2bfloat16((x & 0xffff) / 65536.0f - 0.5f);
  }
}

static cudaStream_t stream;

// Microseconds of one call of `work` inside a graph of `count` calls; median of replays.
static double microseconds(int count, const std::function<void(int)> &work) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < count; ++i)
    work(i);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<float> times;
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  for (int r = 0; r < 12; ++r) {
    CHECK(cudaEventRecord(a, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaEventRecord(b, stream));
    CHECK(cudaEventSynchronize(b));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, a, b));
    if (r > 1)
      times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return times[times.size() / 2] * 1000 / count;
}

static double bandwidth; // TB/s of a plain read, measured first

struct Shape {
  const char *name;
  int64_t N, K;
};

// Every way of cutting up the products of a layer, to choose from. `sweep` or `sweep-halves` on the command line.
static void sweep_linear(const Shape *shapes, int count, __nv_bfloat16 *data, size_t pool, __nv_bfloat16 *x, __nv_bfloat16 *y) {
  const LinearShape ways[] = {{1, 4, 4, 1}, {1, 8, 4, 1}, {1, 8, 3, 1}, {1, 8, 4, 2}, {2, 4, 4, 1}, {2, 4, 4, 2}, {2, 4, 3, 4},
                              {2, 8, 3, 1}, {2, 8, 4, 1}, {2, 8, 3, 2}, {4, 4, 3, 1}, {4, 8, 3, 1}};
  for (int M : {1, 2, 4, 8, 16}) {
    std::printf("M=%d: us of rows/16, warps, stages, splits\n%-12s", M, "");
    for (const LinearShape &w : ways)
      std::printf(" %d,%d,%d,%d", w.row_tiles, w.warps, w.stages, w.splits);
    std::printf("\n");
    for (int i = 0; i < count; ++i) {
      const Shape &s = shapes[i];
      const int copies = static_cast<int>(std::min<size_t>(pool / (s.N * s.K * 2), 40));
      std::printf("%-12s", s.name);
      for (const LinearShape &w : ways) {
        const size_t lines = static_cast<size_t>(w.row_tiles) * 16 + static_cast<size_t>(M), sums = static_cast<size_t>(w.warps + 1) * M;
        if (w.warps * w.stages * lines * 128 + sums * (w.row_tiles * 16 + 1) * 4 > device_limits().shared_per_block) {
          std::printf("       -");
          continue;
        }
        std::printf(" %7.1f", microseconds(copies, [&](int c) {
                      skinny_linear({y, s.N, x, s.K, data + c * s.N * s.K, nullptr, M, s.N, s.K, DType::bf16, DType::bf16, DType::bf16},
                                    w, stream);
                    }));
      }
      std::printf("   floor %.1f\n", s.N * s.K * 2 / bandwidth / 1e6);
      std::fflush(stdout);
    }
  }
}

struct Model {
  const char *name;
  int64_t H, F;
  int q_heads, kv_heads, dim, layers;
};

// The four products of a layer, and a whole layer as decode runs it, over distinct weights in one graph. `sweep`: every way of
// cutting up the two launches of narrow layers.
static void bench_layers(const Model &model, int context, bool sweep, __nv_bfloat16 *data, size_t pool, __nv_bfloat16 *x, __nv_bfloat16 *y) {
  const int q_heads = model.q_heads, kv_heads = model.kv_heads, dim = model.dim, page = 16;
  const int64_t H = model.H, F = model.F, Q = (q_heads + 2 * kv_heads) * dim, A = q_heads * dim;
  const int64_t weights = Q * H + H * A + 2 * F * H + H * F;
  const int layers = static_cast<int>(std::min<size_t>(model.layers, pool / 2 / weights));
  for (int M : {1, 2, 4, 8, 16, 32}) {
    if (sweep && M > kNarrowMaxRows)
      break;
    auto linear = [&](void *out, const void *in, const __nv_bfloat16 *w, int64_t N, int64_t K) {
      skinny_linear({out, N, in, K, w, nullptr, M, N, K, DType::bf16, DType::bf16, DType::bf16}, stream);
    };
    __nv_bfloat16 *a = y, *b = y + (4 << 20), *c = y + (8 << 20), *residual = y + (12 << 20);
    const double products = microseconds(layers, [&](int l) {
      const __nv_bfloat16 *w = data + l * weights;
      linear(a, x, w, Q, H);
      linear(b, a, w + Q * H, H, A);
      linear(c, b, w + Q * H + H * A, 2 * F, H);
      linear(a, c, w + Q * H + H * A + 2 * F * H, H, F);
    });
    const double floor = weights * 2 / bandwidth / 1e6;
    std::printf("%s layer M=%-2d products alone %7.1f us = %.3f of read", model.name, M, products, floor / products);

    std::vector<int32_t> starts(M + 1), lens(M, context), table(M * context / page), positions(M, context - 1);
    std::vector<int64_t> slots(M);
    std::vector<uint16_t> map(q_heads);
    std::vector<float> inv(dim / 2, 0.01f);
    for (int i = 0; i <= M; ++i)
      starts[i] = i;
    for (size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<int>(i);
    for (int i = 0; i < M; ++i)
      slots[i] = (i + 1) * context - 1;
    for (int i = 0; i < q_heads; ++i)
      map[i] = static_cast<uint16_t>(i / (q_heads / kv_heads));
    auto upload = [&](const auto &v) {
      void *d;
      CHECK(cudaMalloc(&d, v.size() * sizeof(v[0])));
      CHECK(cudaMemcpy(d, v.data(), v.size() * sizeof(v[0]), cudaMemcpyHostToDevice));
      return d;
    };
    void *buffers[] = {upload(starts), upload(lens), upload(table), upload(positions), upload(slots), upload(map), upload(inv)};
    void *workspace, *kv;
    const int64_t kv_bytes = int64_t(M) * context * kv_heads * dim * 4;
    CHECK(cudaMalloc(&workspace, attention_workspace_bytes(M, M, q_heads, dim)));
    CHECK(cudaMemset(workspace, 0, attention_workspace_bytes(M, M, q_heads, dim)));
    CHECK(cudaMalloc(&kv, kv_bytes * layers));
    CHECK(cudaMemset(kv, 1, kv_bytes * layers));
    // A layer whose products do what stands next to them, as far as is said.
    auto attend = [&](const KvPool &kv_pool) {
      Attention t = {};
      t.out = b, t.ld_out = A, t.q = a, t.ld_q = Q, t.pool = kv_pool;
      t.kv_head_of_q = static_cast<uint16_t *>(buffers[5]), t.seq_starts = static_cast<int32_t *>(buffers[0]);
      t.context_lens = static_cast<int32_t *>(buffers[1]), t.page_table = static_cast<int32_t *>(buffers[2]);
      t.page_table_stride = context / page, t.T = M, t.S = M, t.q_heads = q_heads, t.max_group = q_heads / kv_heads, t.max_query = 1;
      t.max_context = context, t.scale = 0.088f, t.act = DType::bf16, t.workspace = workspace;
      attention(t, stream);
    };
    auto pool_of = [&](int l) {
      return KvPool{static_cast<char *>(kv) + l * kv_bytes, 2 * kv_heads * page * dim * 2, DType::bf16, kv_heads, page, dim};
    };
    auto layer = [&](int l, bool gate_rope, bool sum_norm) {
      const __nv_bfloat16 *w = data + l * weights, *output = w + Q * H, *gate_up = output + H * A, *down = gate_up + 2 * F * H;
      const AddRmsNorm norm = {b, H, residual, H, c, H, x, M, H, 1e-6f, 0, DType::bf16};
      const __nv_bfloat16 *normed = sum_norm ? residual : b;
      __nv_bfloat16 *sums = sum_norm ? residual : c, *key = a + A, *value = key + kv_heads * dim;
      const Rope rope = {a, key, Q, Q, static_cast<int32_t *>(buffers[3]), static_cast<float *>(buffers[6]), nullptr, nullptr, 1, 1e-6f,
                         M, q_heads, kv_heads, dim, dim, false, DType::bf16};
      const KvAppend append = {pool_of(l), key, value, Q, Q, static_cast<int64_t *>(buffers[4]), M, DType::bf16};
      LinearFusion rotated, gated, added;
      if (sum_norm)
        rotated.norm = gated.norm = reinterpret_cast<const float *>(x), rotated.eps = gated.eps = 1e-6f, added.add = true;
      if (gate_rope)
        rotated.rope = &rope, rotated.append = &append, gated.gated = true;
      auto product = [&](void *out, const void *in, const __nv_bfloat16 *weight, int64_t N, int64_t K, const LinearFusion &f) {
        fused_linear({out, f.gated ? N / 2 : N, in, K, weight, nullptr, M, N, K, DType::bf16, DType::bf16, DType::bf16}, f, stream);
      };
      if (!sum_norm)
        add_rms_norm(norm, stream);
      product(a, normed, w, Q, H, rotated);
      if (!gate_rope)
        rope_append(rope, append, stream);
      attend(pool_of(l));
      product(sums, b, output, H, A, added);
      if (!sum_norm)
        add_rms_norm(norm, stream);
      product(gate_rope ? a : c, normed, gate_up, 2 * F, H, gated);
      if (!gate_rope)
        gated_act({a, F, c, c + F, 2 * F, 2 * F, M, F, Activation::silu, DType::bf16}, stream);
      product(sums, a, down, H, F, added);
    };
    const double bytes = floor + kv_bytes / bandwidth / 1e6;
    auto whole = [&](const char *name, bool gate_rope, bool sum_norm) {
      const double us = microseconds(layers, [&](int l) { layer(l, gate_rope, sum_norm); });
      std::printf(", %s %7.1f us = %.3f", name, us, bytes / us);
    };
    std::printf("; whole layer (context %d)", context);
    whole("op by op", false, false);
    if (M <= kSkinnyMaxRows) {
      whole("gate and rope fused", true, false);
      whole("sums and norms too", true, true);
    }
    std::printf("; attention %.1f us\n", microseconds(layers, [&](int l) { attend(pool_of(l)); }));

    // In two launches, which leave parts to each other.
    float *attention_parts = reinterpret_cast<float *>(y + (16 << 20)), *feed_forward_parts = reinterpret_cast<float *>(y + (24 << 20));
    NarrowAttention n = {};
    n.in = {residual, H, feed_forward_parts, 0, b, H}, n.norm = reinterpret_cast<const float *>(x), n.eps = 1e-6f;
    n.rope = {nullptr, nullptr, 0, 0, static_cast<int32_t *>(buffers[3]), static_cast<float *>(buffers[6]), nullptr, nullptr, 1, 1e-6f,
              M, q_heads, kv_heads, dim, dim, false, DType::bf16};
    n.append.slot_mapping = static_cast<int64_t *>(buffers[4]), n.context_lens = static_cast<int32_t *>(buffers[1]);
    n.page_table = static_cast<int32_t *>(buffers[2]), n.page_table_stride = context / page, n.scale = 0.088f;
    n.parts = attention_parts, n.M = M, n.H = H;
    NarrowFeedForward f = {};
    f.in = {b, H, attention_parts, kv_heads, residual, H}, f.norm = n.norm, f.eps = n.eps, f.kind = Activation::silu;
    f.parts = feed_forward_parts, f.M = M, f.H = H, f.F = F;
    const auto at_layer = [&](int l) {
      n.append.pool = pool_of(l);
      n.qkv = data + l * weights, n.output = data + l * weights + Q * H;
      f.gate_up = data + l * weights + Q * H + H * A, f.down = data + l * weights + Q * H + H * A + 2 * F * H;
    };
    at_layer(0);
    if (M <= kNarrowMaxRows && narrow_attention_applies(n) && narrow_feed_forward_applies(f)) {
      const auto two = [&](NarrowShape a, NarrowShape b) {
        n.in.count = b.clusters;
        const double us = microseconds(layers, [&](int l) {
          at_layer(l);
          narrow_attention(n, a, stream);
          narrow_feed_forward(f, b, stream);
        });
        const double first = microseconds(layers, [&](int l) { at_layer(l), narrow_attention(n, a, stream); });
        const double second = microseconds(layers, [&](int l) { at_layer(l), narrow_feed_forward(f, b, stream); });
        std::printf("%s layer M=%d in two launches (clusters of %d, %d steps; %d of %d) %7.1f us = %.3f; attention half %.1f us, feed-forward %.1f us\n",
                    model.name, M, a.cluster, a.steps, b.clusters, b.cluster, us, bytes / us, first, second);
        std::fflush(stdout);
      };
      const NarrowShape a = narrow_shape(n), b = narrow_shape(f);
      two(a, b);
      if (sweep) {
        for (int cluster : {16, 14, 12, 10})
          for (int steps : {1, 2, 4, 8})
            two({cluster, 0, steps}, b);
        for (int cluster : {16, 8})
          for (int clusters : {2, 3, 4, 6, 8, 12, 16})
            if (F % (32 * clusters) == 0 && cluster * clusters <= 132 && (2 * F * H + H * F) / (cluster * clusters) < (95 << 10))
              two(a, {cluster, clusters, 0});
      }
    }
    std::fflush(stdout);
    for (void *d : buffers)
      cudaFree(d);
    cudaFree(workspace), cudaFree(kv);
  }
}

// Decode attention of Qwen2.5-7B: 28 query heads, 4 KV heads of 128, pages of 16 in disorder. Lengths of one kind, or between
// half and one and a half of it; `bound` is what a captured graph knows of them. Beside it a plain read of as many bytes.
static void bench_decode_attention(int S, int context, bool ragged, int bound, __nv_bfloat16 *data, size_t pool, __nv_bfloat16 *x,
                                   __nv_bfloat16 *y) {
  const int q_heads = 28, kv_heads = 4, page = 16, stride = (bound + page - 1) / page;
  std::vector<int32_t> starts(S + 1), lens(S, context), table(S * stride);
  std::vector<uint16_t> map(q_heads);
  uint32_t state = 1;
  int64_t tokens = 0, pages = 0;
  for (int i = 0; i < S; ++i) {
    state = state * 1664525u + 1013904223u;
    if (ragged)
      lens[i] = context / 2 + static_cast<int>((state >> 8) % static_cast<uint32_t>(context));
    tokens += lens[i], pages += (lens[i] + page - 1) / page;
    starts[i + 1] = i + 1;
  }
  int64_t next = 0;
  for (int i = 0; i < S; ++i)
    for (int j = 0; j * page < lens[i]; ++j)
      table[i * stride + j] = static_cast<int>(next++ * 7919 % pages);
  for (int i = 0; i < q_heads; ++i)
    map[i] = i / 7;
  const int64_t page_bytes = 2 * kv_heads * page * 128 * 2, kv_bytes = tokens * kv_heads * 128 * 2 * 2;
  if (pages * page_bytes > int64_t(pool))
    return;
  int32_t *d_starts, *d_lens, *d_table;
  uint16_t *d_map;
  void *workspace;
  CHECK(cudaMalloc(&d_starts, starts.size() * 4));
  CHECK(cudaMalloc(&d_lens, lens.size() * 4));
  CHECK(cudaMalloc(&d_table, table.size() * 4));
  CHECK(cudaMalloc(&d_map, map.size() * 2));
  CHECK(cudaMalloc(&workspace, attention_workspace_bytes(S, S, q_heads, 128)));
  CHECK(cudaMemset(workspace, 0, attention_workspace_bytes(S, S, q_heads, 128)));
  CHECK(cudaMemcpy(d_starts, starts.data(), starts.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_lens, lens.data(), lens.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_table, table.data(), table.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_map, map.data(), map.size() * 2, cudaMemcpyHostToDevice));
  Attention a = {};
  a.out = y, a.ld_out = 3584, a.q = x, a.ld_q = 4608;
  a.pool.page_stride_bytes = page_bytes, a.pool.type = DType::bf16, a.pool.kv_heads = kv_heads;
  a.pool.page_size = page, a.pool.head_dim = 128;
  a.kv_head_of_q = d_map, a.seq_starts = d_starts, a.context_lens = d_lens, a.page_table = d_table;
  a.page_table_stride = stride, a.T = S, a.S = S, a.q_heads = q_heads, a.max_group = 7, a.max_query = 1;
  a.max_context = bound, a.scale = 0.088f, a.act = DType::bf16, a.workspace = workspace;
  const int copies = static_cast<int>(std::min<int64_t>(pool / (pages * page_bytes), 28));
  const double us = microseconds(copies, [&](int i) {
    a.pool.base = reinterpret_cast<char *>(data) + i * pages * page_bytes;
    attention(a, stream);
  });
  const double read = microseconds(copies, [&](int i) {
    read_kernel<<<device_limits().sms * 4, 512, 0, stream>>>(reinterpret_cast<uint4 *>(data) + i * pages * page_bytes / 16, kv_bytes / 16,
                                                             reinterpret_cast<uint32_t *>(y));
  });
  std::printf("decode attention S=%-3d context=%-5d%s %8.1f us = %.2f of read; a plain read of the same bytes %.1f us\n", S, context,
              ragged ? " ragged" : "", us, kv_bytes / us / 1e6 / bandwidth, read);
  std::fflush(stdout);
  cudaFree(d_starts), cudaFree(d_lens), cudaFree(d_table), cudaFree(d_map), cudaFree(workspace);
}

// What moves little: rope with the append of keys and values, norms, gated activation; over distinct rows in one graph.
static void bench_rows(__nv_bfloat16 *data, __nv_bfloat16 *x, __nv_bfloat16 *y) {
  for (int T : {1, 64, 256, 8192}) {
    std::vector<int32_t> positions(T);
    std::vector<int64_t> slots(T);
    std::vector<float> inv(64);
    for (int i = 0; i < T; ++i)
      positions[i] = i * 3, slots[i] = int64_t(i) * 7919 % T * 16 + i % 16;
    for (int i = 0; i < 64; ++i)
      inv[i] = 1.0f / static_cast<float>(i + 1);
    int32_t *d_positions;
    int64_t *d_slots;
    float *d_inv;
    CHECK(cudaMalloc(&d_positions, T * 4));
    CHECK(cudaMalloc(&d_slots, T * 8));
    CHECK(cudaMalloc(&d_inv, 64 * 4));
    CHECK(cudaMemcpy(d_positions, positions.data(), T * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_slots, slots.data(), T * 8, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_inv, inv.data(), 64 * 4, cudaMemcpyHostToDevice));
    const KvPool pool = {data, 2 * 4 * 16 * 128 * 2, DType::bf16, 4, 16, 128};
    const int64_t ld = 4608, F = 18944;
    const int copies = T > 1000 ? 3 : 28;
    auto rope_of = [&](int i) {
      __nv_bfloat16 *q = x + (T > 1000 ? 0 : i * T * ld);
      return Rope{q, q + 28 * 128, ld, ld, d_positions, d_inv, nullptr, nullptr, 1, 1e-6f, T, 28, 4, 128, 128, false, DType::bf16};
    };
    auto append_of = [&](int i) {
      __nv_bfloat16 *q = x + (T > 1000 ? 0 : i * T * ld);
      return KvAppend{pool, q + 28 * 128, q + 32 * 128, ld, ld, d_slots, T, DType::bf16};
    };
    const double apart = microseconds(copies, [&](int i) { rope(rope_of(i), stream), kv_append(append_of(i), stream); });
    const double joint = microseconds(copies, [&](int i) { rope_append(rope_of(i), append_of(i), stream); });
    const double norm = microseconds(copies, [&](int) {
      add_rms_norm({y, 3584, x, 3584, x + (64 << 20) / 2, 3584, data, T, 3584, 1e-6f, 0, DType::bf16}, stream);
    });
    const double gate = microseconds(copies, [&](int i) {
      const __nv_bfloat16 *g = data + (T > 1000 ? 0 : i * T * 2 * F);
      gated_act({y, F, g, g + F, 2 * F, 2 * F, T, F, Activation::silu, DType::bf16}, stream);
    });
    const double row = bandwidth * 1e6 / T;
    std::printf("rows T=%-5d us (floor): rope, append %5.1f, rope_append %5.1f (%.1f), add_rms_norm %5.1f (%.1f), gated_act %5.1f (%.1f)\n",
                T, apart, joint, (36 + 32 + 8) * 256 / row, norm, 4 * 7168 / row, gate, 3 * F * 2 / row);
    std::fflush(stdout);
    cudaFree(d_positions), cudaFree(d_slots), cudaFree(d_inv);
  }
}

// Prefill attention of sequences of T tokens each, as a layer of Qwen2.5-7B has it.
static void bench_prefill(int seqs, int T, __nv_bfloat16 *data, __nv_bfloat16 *x, __nv_bfloat16 *y) {
  const int q_heads = 28, kv_heads = 4, page = 16, stride = T / page;
  std::vector<int32_t> table(seqs * stride), starts, contexts(seqs, T);
  std::vector<uint16_t> map(q_heads);
  for (int i = 0; i < seqs * stride; ++i)
    table[i] = i;
  for (int i = 0; i <= seqs; ++i)
    starts.push_back(i * T);
  for (int i = 0; i < q_heads; ++i)
    map[i] = i / 7;
  auto upload = [](const auto &from) {
    void *to;
    CHECK(cudaMalloc(&to, from.size() * sizeof(from[0])));
    CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(from[0]), cudaMemcpyHostToDevice));
    return to;
  };
  void *d_starts = upload(starts), *d_contexts = upload(contexts), *d_table = upload(table), *d_map = upload(map), *workspace;
  const int64_t tokens = int64_t{seqs} * T;
  CHECK(cudaMalloc(&workspace, attention_workspace_bytes(tokens, seqs, q_heads, 128)));
  CHECK(cudaMemset(workspace, 0, attention_workspace_bytes(tokens, seqs, q_heads, 128)));
  Attention a = {};
  a.out = y, a.ld_out = 3584, a.q = x, a.ld_q = 3584;
  a.pool = {data, 2 * 4 * page * 128 * 2, DType::bf16, kv_heads, page, 128};
  a.kv_head_of_q = static_cast<uint16_t *>(d_map), a.seq_starts = static_cast<int32_t *>(d_starts);
  a.context_lens = static_cast<int32_t *>(d_contexts), a.page_table = static_cast<int32_t *>(d_table);
  a.page_table_stride = stride, a.T = tokens, a.S = seqs, a.q_heads = q_heads, a.max_group = 7, a.max_query = T, a.max_context = T;
  a.scale = 0.088f, a.act = DType::bf16, a.workspace = workspace;
  const double us = microseconds(4, [&](int) { attention(a, stream); });
  std::printf("prefill attention %d x %-5d %8.1f us = %.0f TFLOP/s\n", seqs, T, us, 2.0 * tokens * T * 128 * q_heads / us / 1e6);
  for (void *p : {d_starts, d_contexts, d_table, d_map, workspace})
    CHECK(cudaFree(p));
}

int main(int argc, char **argv) {
  // Arguments: the parts wanted (layers, linear, wide, gated, attention, prefill, sample, rows, sweep, sweep-halves, sweep-wide, sweep-gated, narrow);
  // none: all but the sweeps, of which narrow is one.
  auto named = [&](const char *part) { return std::any_of(argv + 1, argv + argc, [&](char *a) { return !std::strcmp(a, part); }); };
  auto wanted = [&](const char *part) { return argc == 1 || named(part); };
  CHECK(cudaStreamCreate(&stream));
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  const size_t pool = 6ull << 30;
  __nv_bfloat16 *data, *x, *y;
  CHECK(cudaMalloc(&data, pool));
  CHECK(cudaMalloc(&x, 256 << 20));
  CHECK(cudaMalloc(&y, 512 << 20));
  fill_kernel<<<1024, 256, 0, stream>>>(data, pool / 2, 1);
  fill_kernel<<<1024, 256, 0, stream>>>(x, (256 << 20) / 2, 2);
  CHECK(cudaStreamSynchronize(stream));

  const double read_us = microseconds(3, [&](int) {
    read_kernel<<<prop.multiProcessorCount * 8, 512, 0, stream>>>(reinterpret_cast<uint4 *>(data), pool / 16,
                                                                  reinterpret_cast<uint32_t *>(y));
  });
  bandwidth = pool / read_us / 1e6;
  std::printf("%s, %d SMs: read %.2f TB/s\n", prop.name, prop.multiProcessorCount, bandwidth);

  const Shape shapes[] = {{"qkv 7B", 4608, 3584},   {"o 7B", 3584, 3584},       {"gate_up 7B", 37888, 3584},
                      {"down 7B", 3584, 18944}, {"lm_head 7B", 152064, 3584}, {"qkv 14B", 7168, 5120},
                          {"o 14B", 5120, 5120},    {"gate_up 14B", 27648, 5120}, {"down 14B", 5120, 13824},
                          {"qkv 135M", 960, 576},   {"o 135M", 576, 576},      {"gate_up 135M", 3072, 576}, {"down 135M", 576, 1536}};
  const Shape halves[] = {{"qkv 72B/2", 5120, 8192},    {"o 72B/2", 8192, 4096}, {"gate_up 72B/2", 29568, 8192},
                          {"down 72B/2", 8192, 14784},  {"qkv 7B/2", 2304, 3584}, {"o 7B/2", 3584, 1792},
                          {"gate_up 7B/2", 18944, 3584}, {"down 7B/2", 3584, 9472}, {"lm_head 72B/2", 76032, 8192}};
  if (named("sweep"))
    sweep_linear(shapes, static_cast<int>(std::size(shapes)), data, pool, x, y);
  if (named("sweep-halves"))
    sweep_linear(halves, static_cast<int>(std::size(halves)), data, pool, x, y);
  const Model narrow[] = {{"135M", 576, 1536, 9, 3, 64, 30}, {"360M", 960, 2560, 15, 5, 64, 32}};
  if (wanted("layers")) {
    for (const Model &m : {Model{"7B", 3584, 18944, 28, 4, 128, 12}, Model{"7B/2", 3584, 9472, 14, 2, 128, 24},
                           Model{"72B/2", 8192, 14784, 32, 4, 128, 7}})
      bench_layers(m, 256, false, data, pool, x, y);
    for (const Model &m : narrow)
      for (int context : {256, 2048})
        bench_layers(m, context, false, data, pool, x, y);
  }
  if (named("narrow"))
    for (int context : {256, 4096})
      bench_layers(narrow[0], context, true, data, pool, x, y);
  if (wanted("rows"))
    bench_rows(data, x, y);
  if (wanted("linear")) {
    std::printf("%-12s", "linear");
    for (int M : {1, 2, 8, 16, 32})
      std::printf("   M=%-2d us / of read", M);
    std::printf("\n");
  }
  for (const Shape &s : shapes) {
    if (!wanted("linear"))
      break;
    std::printf("%-12s", s.name);
    const size_t bytes = s.N * s.K * 2;
    const int copies = static_cast<int>(std::min<size_t>(pool / bytes, 64));
    for (int M : {1, 2, 8, 16, 32}) {
      const double us = microseconds(copies, [&](int i) {
        skinny_linear({y, s.N, x, s.K, data + i * s.N * s.K, nullptr, M, s.N, s.K, DType::bf16, DType::bf16, DType::bf16},
                      stream);
      });
      std::printf("  %8.1f / %.2f    ", us, bytes / us / 1e6 / bandwidth);
    }
    std::printf("\n");
  }

  for (bool sweep : {false, true})
    if (sweep ? named("sweep-wide") : wanted("wide"))
      bench_wide(sweep, bandwidth, data, pool, x, y, stream);
  for (bool sweep : {false, true})
    if (sweep ? named("sweep-gated") : wanted("gated"))
      bench_gated(sweep, data, pool, x, y, stream);

  for (const Shape &s : shapes) {
    if (!wanted("linear"))
      break;
    if (s.N * s.K > 80 << 20)
      continue; // logits
    std::printf("%-12s f32", s.name);
    const size_t bytes = s.N * s.K * 4;
    float *weights = reinterpret_cast<float *>(data);
    for (int M : {1, 16, 64, 1024}) {
      const double us = microseconds(static_cast<int>(std::min<size_t>(pool / bytes, 64)), [&](int i) {
        skinny_linear({y, s.N, x, s.K, weights + i * s.N * s.K, nullptr, M, s.N, s.K, DType::f32, DType::f32, DType::f32}, stream);
      });
      std::printf("   M=%-4d %8.1f us / %.2f, %.1f TFLOP/s", M, us, bytes / us / 1e6 / bandwidth, 2e-6 * M * s.N * s.K / us);
    }
    std::printf("\n");
  }

  if (wanted("attention"))
    for (int S : {1, 16, 64, 256})
      for (int context : {128, 256, 1024, 8192})
        for (bool ragged : {false, true})
          bench_decode_attention(S, context, ragged, context <= 341 ? 512 : context <= 1365 ? 2048 : 16384, data, pool, x, y);

  if (wanted("prefill")) {
    for (int T : {512, 2048, 8192})
      bench_prefill(1, T, data, x, y);
    bench_prefill(8, 1024, data, x, y);
  }

  // Sampling.
  float *logits;
  SampleRow *rows;
  CHECK(cudaMalloc(&logits, 256ull * 152064 * 4));
  CHECK(cudaMalloc(&rows, 256 * sizeof(SampleRow)));
  for (bool constant : {false, true}) {
    if (!wanted("sample"))
      break;
    // Logits between -16 and 16, or all alike.
    std::vector<float> host_logits(256ull * 152064);
    uint32_t state = 1;
    for (float &v : host_logits)
      state = state * 1664525u + 1013904223u, v = constant ? 0.5f : static_cast<float>(state >> 8) / (1 << 19) - 16.0f;
    CHECK(cudaMemcpy(logits, host_logits.data(), host_logits.size() * 4, cudaMemcpyHostToDevice));
    for (int mode = 0; mode < 4; ++mode)
      for (int R : {1, 16, 256}) {
        std::vector<SampleRow> host(R, SampleRow{mode ? 1.0f : 0.0f, mode >= 2 ? 0.9f : 1.0f, 0, mode == 2 ? 50 : 0, 1, 1});
        CHECK(cudaMemcpy(rows, host.data(), R * sizeof(SampleRow), cudaMemcpyHostToDevice));
        const double us = microseconds(8, [&](int) {
          sample({reinterpret_cast<int32_t *>(y), nullptr, logits, 152064, rows, R, 152064, mode == 0}, stream);
        });
        const char *names[] = {"greedy", "temperature", "top-k+top-p", "top-p"};
        std::printf("sample %-12s %-8s R=%-3d %8.1f us (floor %.1f)\n", names[mode],
                    constant ? "constant" : "random", R, us, R * 152064 * 4 / bandwidth / 1e6);
      }
  }
  CHECK(cudaDeviceSynchronize());
}
