// The two launches of a narrow layer against double precision: every number of rows and parts, ways of cutting them up, lengths
// from one token to many, padded rows, biases, norms of heads, rotations of every kind, windows, softcap.
#include "kernels/cuda/narrow.h"
#include "test/unit/cuda/device_data.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

namespace llmrt::cuda::testing {
namespace {

constexpr float kEps = 1e-5f, kOffset = 0.25f;

// A residual in two pieces, and what double precision makes of it.
struct Residual {
  int64_t M, H, ld, ld_sum;
  int count;
  Tensor rows, parts, norm, sum;

  Residual(int64_t M, int64_t H, int count)
      : M(M), H(H), ld(H + 8), ld_sum(H + 16), count(count), rows(M * ld, DType::bf16, 1, 2), parts(std::max(count, 1) * M * H, DType::f32, 2),
        norm(H, DType::f32, 3), sum(M * ld_sum, DType::bf16, 4) {}
  NarrowResidual call() const { return {rows.device.get(), ld, parts.device.as<float>(), count, sum.device.get(), ld_sum}; }
  double at(int64_t m, int64_t h) const {
    float part = 0;
    for (int i = 0; i < count; ++i)
      part += parts.host[(i * M + m) * H + h];
    return double(rows.host[m * ld + h]) + round_to(part, DType::bf16);
  }
  std::vector<double> normed() const { // [M, H]
    std::vector<double> x;
    for (int64_t m = 0; m < M; ++m) {
      double square = 0;
      for (int64_t h = 0; h < H; ++h)
        square += at(m, h) * at(m, h);
      for (int64_t h = 0; h < H; ++h)
        x.push_back(at(m, h) / std::sqrt(square / double(H) + kEps) * (double(norm.host[h]) + kOffset));
    }
    return x;
  }
  void check_sum() const {
    std::vector<double> want(sum.host.begin(), sum.host.end());
    for (int64_t m = 0; m < M; ++m)
      for (int64_t h = 0; h < H; ++h)
        want[m * ld_sum + h] = at(m, h);
    EXPECT_LT(relative_error(sum.read(), want), tolerance(DType::bf16));
  }
};

// x[M, K] · w[N, K]ᵀ + bias
std::vector<double> product(const std::vector<double> &x, const Tensor &w, const Tensor *bias, int64_t M, int64_t N, int64_t K) {
  std::vector<double> y;
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < N; ++n) {
      double sums[8] = {};
      for (int64_t k = 0; k < K; k += 8)
        for (int i = 0; i < 8; ++i)
          sums[i] += x[m * K + k + i] * w.host[n * K + k + i];
      y.push_back((bias ? bias->host[n] : 0) + std::accumulate(sums, sums + 8, 0.0));
    }
  return y;
}

// Parts are bf16 products of rounded inputs; this is what two roundings on the way leave.
constexpr double kPartsTolerance = 1.2e-2;

struct FeedForwardCase {
  int64_t M, H, F;
  int parts = 0;
  bool bias = false;
  Activation kind = Activation::silu;
  NarrowShape shape = {};
};

void check(const FeedForwardCase &c) {
  SCOPED_TRACE("M " + std::to_string(c.M) + " H " + std::to_string(c.H) + " F " + std::to_string(c.F) + " parts " + std::to_string(c.parts) +
               " clusters " + std::to_string(c.shape.clusters) + " of " + std::to_string(c.shape.cluster));
  const Residual in(c.M, c.H, c.parts);
  const Tensor gate_up(2 * c.F * c.H, DType::bf16, 5, 1 / std::sqrt(float(c.H))), down(c.H * c.F, DType::bf16, 6, 1 / std::sqrt(float(c.F)));
  const Tensor gate_up_bias(2 * c.F, DType::f32, 7), down_bias(c.H, DType::f32, 8);
  NarrowFeedForward p = {};
  p.in = in.call(), p.norm = in.norm.device.as<float>(), p.eps = kEps, p.norm_offset = kOffset, p.kind = c.kind;
  p.gate_up = gate_up.device.get(), p.down = down.device.get(), p.M = c.M, p.H = c.H, p.F = c.F;
  if (c.bias)
    p.gate_up_bias = gate_up_bias.device.as<float>(), p.down_bias = down_bias.device.as<float>();
  ASSERT_TRUE(narrow_feed_forward_applies(p));
  const NarrowShape shape = c.shape.cluster ? c.shape : narrow_shape(p);
  const DeviceBytes parts(shape.clusters * c.M * c.H * 4);
  p.parts = parts.as<float>();
  narrow_feed_forward(p, shape, nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());

  in.check_sum();
  const std::vector<double> both = product(in.normed(), gate_up, c.bias ? &gate_up_bias : nullptr, c.M, 2 * c.F, c.H);
  std::vector<double> h;
  for (int64_t m = 0; m < c.M; ++m)
    for (int64_t f = 0; f < c.F; ++f) {
      const double g = both[m * 2 * c.F + f];
      const double a = c.kind == Activation::silu        ? g / (1 + std::exp(-g))
                       : c.kind == Activation::gelu_tanh ? 0.5 * g * (1 + std::tanh(0.7978845608028654 * (g + 0.044715 * g * g * g)))
                                                         : 0.5 * g * (1 + std::erf(g * 0.7071067811865476));
      h.push_back(a * both[m * 2 * c.F + c.F + f]);
    }
  const std::vector<double> want = product(h, down, c.bias ? &down_bias : nullptr, c.M, c.H, c.F);
  const std::vector<float> got = parts.read<float>();
  std::vector<float> sum(c.M * c.H);
  for (size_t i = 0; i < got.size(); ++i)
    sum[i % sum.size()] += got[i];
  EXPECT_LT(relative_error(sum, want), kPartsTolerance);
  narrow_feed_forward(p, shape, nullptr); // the same bits again
  EXPECT_EQ(parts.read<float>(), got);
}

// Small enough for tools/gpu-sanitize.sh.
TEST(Narrow, FeedForwardOfFewColumns) {
  for (int64_t M : {1, 2, 3, 4})
    for (int parts : {0, 3, 9})
      check({M, 96, 256, parts, parts == 3, Activation::gelu});
}

TEST(Narrow, FeedForward) {
  for (int64_t M : {1, 2, 3, 4})
    for (int parts : {0, 3, 9})
      check({M, 576, 1536, parts, parts == 0});
  for (int cluster : {3, 8, 16})
    for (int clusters : {1, 2, 3, 4, 6, 8})
      check({2, 96, 768, 4, true, Activation::gelu_tanh, {cluster, clusters, 0}});
  check({4, 512, 1024, 2, false});
  check({3, 768, 2048, 16, true});
}

struct AttentionCase {
  std::vector<int> contexts; // this token included; 0: padded
  int64_t H;
  int q_heads, kv_heads, dim;
  int parts = 0;
  bool bias = false, head_norms = false, interleaved = false;
  int rotary_dim = 0, window = 0, page_size = 16; // rotary_dim 0: all
  float softcap = 0;
  NarrowShape shape = {};
};

// Norm of a head, if any, and its rotation.
void rotate(std::vector<double> &x, const AttentionCase &c, const Tensor &norm, const std::vector<float> &frequencies, int position) {
  if (c.head_norms) {
    const double square = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] *= double(norm.host[i]) / std::sqrt(square / double(x.size()) + kEps);
  }
  const size_t half = frequencies.size();
  for (size_t i = 0; i < half; ++i) {
    const size_t a = c.interleaved ? 2 * i : i, b = c.interleaved ? 2 * i + 1 : i + half;
    const double angle = double(position) * double(frequencies[i]), low = x[a], high = x[b];
    x[a] = 1.5 * (low * std::cos(angle) - high * std::sin(angle));
    x[b] = 1.5 * (high * std::cos(angle) + low * std::sin(angle));
  }
}

void check(const AttentionCase &c) {
  const int64_t M = int64_t(c.contexts.size()), D = c.dim, A = c.q_heads * D, N = A + 2 * c.kv_heads * D;
  SCOPED_TRACE("M " + std::to_string(M) + " context " + std::to_string(c.contexts[0]) + " H " + std::to_string(c.H) + " heads " +
               std::to_string(c.q_heads) + "/" + std::to_string(c.kv_heads) + " of " + std::to_string(c.dim) + " parts " +
               std::to_string(c.parts) + " cluster " + std::to_string(c.shape.cluster) + " steps " + std::to_string(c.shape.steps));
  const int group = c.q_heads / c.kv_heads, rotary_dim = c.rotary_dim ? c.rotary_dim : c.dim;
  const Residual in(M, c.H, c.parts);
  const Tensor qkv(N * c.H, DType::bf16, 5, 1 / std::sqrt(float(c.H))), output(c.H * A, DType::bf16, 6, 1 / std::sqrt(float(A)));
  const Tensor qkv_bias(N, DType::f32, 7), output_bias(c.H, DType::f32, 8), q_norm(D, DType::f32, 9), k_norm(D, DType::f32, 10);

  // Pages in disorder, filled with keys and values; the token of this step lies where its position says.
  const int stride = *std::max_element(c.contexts.begin(), c.contexts.end()) / c.page_size + 2;
  std::vector<int32_t> table(M * stride, -1), positions;
  std::vector<int64_t> slots;
  int pages = 0;
  for (int64_t m = 0; m < M; ++m)
    for (int i = 0; i * c.page_size < c.contexts[m]; ++i)
      table[m * stride + i] = pages++;
  std::vector<int> shuffled(pages);
  std::iota(shuffled.begin(), shuffled.end(), 0);
  std::mt19937 engine(7);
  std::shuffle(shuffled.begin(), shuffled.end(), engine);
  for (int32_t &page : table)
    if (page >= 0)
      page = shuffled[page];
  const auto slot_of = [&](int64_t m, int key) { return int64_t(table[m * stride + key / c.page_size]) * c.page_size + key % c.page_size; };
  for (int64_t m = 0; m < M; ++m) {
    positions.push_back(std::max(0, c.contexts[m] - 1));
    slots.push_back(c.contexts[m] > 0 ? slot_of(m, c.contexts[m] - 1) : -1);
  }
  const int64_t kv = c.kv_heads * D * c.page_size;
  const Tensor pool(std::max(pages, 1) * 2 * kv, DType::bf16, 11);
  const auto at_slot = [&](int64_t slot, int head, bool value) {
    return slot / c.page_size * 2 * kv + value * kv + (head * c.page_size + slot % c.page_size) * D;
  };
  std::vector<float> frequencies;
  for (int i = 0; i < rotary_dim / 2; ++i)
    frequencies.push_back(std::pow(10000.0f, -2.0f * float(i) / float(rotary_dim)));
  const DeviceBytes d_positions(positions.data(), M * 4), d_slots(slots.data(), M * 8), d_frequencies(frequencies.data(), frequencies.size() * 4);
  const DeviceBytes d_contexts(c.contexts.data(), M * 4), d_table(table.data(), table.size() * 4);

  NarrowAttention p = {};
  p.in = in.call(), p.norm = in.norm.device.as<float>(), p.eps = kEps, p.norm_offset = kOffset;
  p.qkv = qkv.device.get(), p.output = output.device.get();
  if (c.bias)
    p.qkv_bias = qkv_bias.device.as<float>(), p.output_bias = output_bias.device.as<float>();
  p.rope.positions = d_positions.as<int32_t>(), p.rope.inv_freq = d_frequencies.as<float>();
  if (c.head_norms)
    p.rope.q_norm = q_norm.device.as<float>(), p.rope.k_norm = k_norm.device.as<float>();
  p.rope.attention_factor = 1.5f, p.rope.eps = kEps, p.rope.q_heads = c.q_heads, p.rope.kv_heads = c.kv_heads;
  p.rope.head_dim = c.dim, p.rope.rotary_dim = rotary_dim, p.rope.interleaved = c.interleaved, p.rope.act = DType::bf16;
  p.append.pool = {pool.device.get(), 2 * kv * 2, DType::bf16, c.kv_heads, c.page_size, c.dim};
  p.append.slot_mapping = d_slots.as<int64_t>();
  p.context_lens = d_contexts.as<int32_t>(), p.page_table = d_table.as<int32_t>(), p.page_table_stride = stride;
  p.scale = 1 / std::sqrt(float(D)), p.softcap = c.softcap, p.window = c.window, p.M = M, p.H = c.H;
  ASSERT_TRUE(narrow_attention_applies(p));
  const NarrowShape shape = c.shape.cluster ? c.shape : narrow_shape(p);
  const DeviceBytes parts(c.kv_heads * M * c.H * 4);
  p.parts = parts.as<float>();
  narrow_attention(p, shape, nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());

  in.check_sum();
  const std::vector<double> heads = product(in.normed(), qkv, c.bias ? &qkv_bias : nullptr, M, N, c.H);
  const auto head = [&](int64_t m, int64_t h) { return std::vector<double>(heads.begin() + m * N + h * D, heads.begin() + m * N + (h + 1) * D); };
  std::vector<double> want_pool(pool.host.begin(), pool.host.end()), want, attended(M * A);
  for (int64_t m = 0; m < M; ++m) {
    const int past = c.contexts[m] - 1;
    for (int h = 0; h < c.kv_heads && past >= 0; ++h) {
      std::vector<double> key = head(m, c.q_heads + h), value = head(m, c.q_heads + c.kv_heads + h);
      rotate(key, c, k_norm, frequencies, past);
      std::copy(key.begin(), key.end(), want_pool.begin() + at_slot(slots[m], h, false));
      std::copy(value.begin(), value.end(), want_pool.begin() + at_slot(slots[m], h, true));
      for (int g = h * group; g < (h + 1) * group; ++g) {
        std::vector<double> q = head(m, g), scores;
        rotate(q, c, q_norm, frequencies, past);
        const int first = c.window ? std::max(0, past - c.window + 1) : 0;
        for (int j = first; j <= past; ++j) {
          double dot = std::inner_product(q.begin(), q.end(), want_pool.begin() + at_slot(slot_of(m, j), h, false), 0.0) * double(p.scale);
          scores.push_back(c.softcap > 0 ? c.softcap * std::tanh(dot / c.softcap) : dot);
        }
        const double top = *std::max_element(scores.begin(), scores.end());
        double total = 0;
        for (double &s : scores)
          total += s = std::exp(s - top);
        for (int j = first; j <= past; ++j)
          for (int64_t d = 0; d < D; ++d)
            attended[m * A + g * D + d] += scores[j - first] / total * want_pool[at_slot(slot_of(m, j), h, true) + d];
      }
    }
  }
  const std::vector<double> all = product(attended, output, c.bias ? &output_bias : nullptr, M, c.H, A);
  const std::vector<float> got = parts.read<float>();
  std::vector<float> sum, all_sums(M * c.H);
  for (size_t i = 0; i < got.size(); ++i)
    all_sums[i % all_sums.size()] += got[i];
  for (int64_t m = 0; m < M; ++m)
    for (int64_t h = 0; h < c.H && c.contexts[m] > 0; ++h)
      sum.push_back(all_sums[m * c.H + h]), want.push_back(all[m * c.H + h]);
  EXPECT_LT(relative_error(sum, want), kPartsTolerance);
  EXPECT_LT(relative_error(pool.read(), want_pool), tolerance(DType::bf16));
  narrow_attention(p, shape, nullptr); // the same bits again
  EXPECT_EQ(parts.read<float>(), got);
}

TEST(Narrow, Attention) {
  for (int context : {1, 2, 16, 17, 18, 63, 64, 65, 256, 700, 1500, 5000})
    check({{context}, 576, 9, 3, 64, 3});
  for (int parts : {0, 1, 8})
    for (bool bias : {false, true}) {
      check({{300, 7}, 576, 9, 3, 64, parts, bias});
      check({{1, 40, 33}, 576, 9, 3, 64, parts, bias});
      check({{1000, 1, 257, 64}, 576, 9, 3, 64, parts, bias});
    }
  check({{100, 0, 50, 0}, 576, 9, 3, 64, 4});
  check({{0}, 576, 9, 3, 64, 4});
}

TEST(Narrow, AttentionShapes) {
  for (int cluster : {4, 5, 8, 16})
    for (int steps : {1, 4, 8})
      check({{333, 900}, 576, 9, 3, 64, 4, false, false, false, 0, 0, 16, 0, {cluster, 0, steps}});
  check({{400, 31}, 512, 8, 2, 64, 8, true});
  check({{400, 31, 900}, 256, 8, 8, 64, 6, false, true});
  check({{77}, 384, 6, 1, 64, 16});
  check({{200, 99}, 128, 8, 1, 64, 1});
}

TEST(Narrow, AttentionVariants) {
  check({{300, 40}, 576, 9, 3, 64, 3, true, true});
  check({{300, 40}, 576, 9, 3, 64, 3, false, false, true});
  check({{300, 40}, 576, 9, 3, 64, 3, false, true, true, 32});
  check({{300, 40}, 256, 4, 2, 64, 3, false, true, false, 48});
  for (int window : {1, 16, 33, 200})
    check({{500, 40, 1}, 576, 9, 3, 64, 3, false, false, false, 0, window});
  check({{500, 40, 1}, 576, 9, 3, 64, 3, false, false, false, 0, 0, 16, 20.0f});
  check({{500, 40, 1, 64}, 576, 9, 3, 64, 3, false, false, false, 0, 70, 32, 20.0f});
  check({{500, 48}, 256, 4, 2, 64, 3, false, false, false, 0, 0, 48});
}

TEST(Narrow, AddParts) {
  for (int64_t M : {1, 4})
    for (int count : {0, 1, 5, 16}) {
      const Residual in(M, 576, count);
      narrow_add_parts(in.call(), M, 576, nullptr);
      ASSERT_CUDA(cudaDeviceSynchronize());
      in.check_sum();
      NarrowResidual same = in.call(); // in place
      same.sum = const_cast<void *>(same.rows), same.ld_sum = same.ld;
      narrow_add_parts(same, M, 576, nullptr);
      ASSERT_CUDA(cudaDeviceSynchronize());
      std::vector<double> want(in.rows.host.begin(), in.rows.host.end());
      for (int64_t m = 0; m < M; ++m)
        for (int64_t h = 0; h < 576; ++h)
          want[m * in.ld + h] = in.at(m, h);
      EXPECT_LT(relative_error(in.rows.read(), want), tolerance(DType::bf16));
    }
}

// What they do not apply to.
TEST(Narrow, Limits) {
  const Residual in(4, 576, 3);
  const Tensor weights(3072 * 576, DType::bf16, 5);
  NarrowFeedForward f = {};
  f.in = in.call(), f.norm = in.norm.device.as<float>(), f.gate_up = f.down = weights.device.get(), f.M = 4, f.H = 576, f.F = 1536;
  EXPECT_TRUE(narrow_feed_forward_applies(f));
  const auto feed_forward = [&](const std::function<void(NarrowFeedForward &)> &change) {
    NarrowFeedForward other = f;
    change(other);
    return narrow_feed_forward_applies(other);
  };
  EXPECT_FALSE(feed_forward([](auto &p) { p.H = 580; }));
  EXPECT_FALSE(feed_forward([](auto &p) { p.F = 1000; }));
  EXPECT_FALSE(feed_forward([](auto &p) { p.H = 4096, p.F = 14336; })); // more than the blocks can hold
  EXPECT_FALSE(feed_forward([](auto &p) { p.in.ld = 577; }));
  EXPECT_FALSE(feed_forward([](auto &p) { p.in.count = kNarrowMaxParts + 1; }));
  EXPECT_FALSE(feed_forward([](auto &p) { p.down = static_cast<const char *>(p.down) + 2; }));

  NarrowAttention a = {};
  a.in = in.call(), a.norm = f.norm, a.qkv = a.output = weights.device.get(), a.M = 4, a.H = 576;
  a.rope.q_heads = 9, a.rope.kv_heads = 3, a.rope.head_dim = a.rope.rotary_dim = 64, a.rope.act = DType::bf16;
  a.append.pool = {weights.device.get(), 2 * 3 * 16 * 64 * 2, DType::bf16, 3, 16, 64};
  EXPECT_TRUE(narrow_attention_applies(a));
  const auto attention = [&](const std::function<void(NarrowAttention &)> &change) {
    NarrowAttention other = a;
    change(other);
    return narrow_attention_applies(other);
  };
  EXPECT_FALSE(attention([](auto &p) { p.H = 580; }));
  EXPECT_FALSE(attention([](auto &p) { p.H = 4096, p.rope.q_heads = 96; }));                       // too much to hold
  EXPECT_FALSE(attention([](auto &p) { p.rope.head_dim = p.append.pool.head_dim = 128; }));       // no such kernel
  EXPECT_FALSE(attention([](auto &p) { p.rope.q_heads = 10; }));                                   // uneven groups
  EXPECT_FALSE(attention([](auto &p) { p.rope.q_heads = 51; }));                                   // of 17
  EXPECT_FALSE(attention([](auto &p) { p.rope.act = DType::f16; }));
  EXPECT_FALSE(attention([](auto &p) { p.append.pool.page_size = 8; }));
  EXPECT_FALSE(attention([](auto &p) { p.in.rows = static_cast<const char *>(p.in.rows) + 2; }));
}

} // namespace
} // namespace llmrt::cuda::testing
