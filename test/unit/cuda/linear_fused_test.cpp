// Products of few rows with a norm in front, and with a sum, a gate or a rotation behind, against double precision.
#include "kernels/cuda/linear_shape.h"
#include "test/unit/cuda/device_data.h"

#include <numeric>
#include <string>
#include <tuple>

namespace llmrt::cuda::testing {
namespace {

struct Case {
  int64_t M, N, K;
  DType type = DType::bf16;
  bool bias = false, norm = false;
};

// Random operands of a product, and its result in double precision. K is a multiple of 8.
struct Operands {
  Case c;
  int64_t ld_in, ld_out;
  Tensor x, w, b, norm;
  static constexpr float kEps = 1e-5f, kOffset = 0.25f;

  // Inputs whose rows have sizes of their own, so that a norm matters.
  Operands(const Case &c, int64_t ld_out)
      : c(c), ld_in(c.K + 8), ld_out(ld_out), x(rows(c.M, ld_in), c.type), w(c.N * c.K, c.type, 2, 1.0f / std::sqrt(float(c.K))),
        b(c.N, DType::f32, 3), norm(c.K, DType::f32, 4) {}

  Linear call(void *out) const {
    return {out, ld_out, x.device.get(), ld_in, w.device.get(), c.bias ? b.device.as<float>() : nullptr, c.M, c.N, c.K,
            c.type, c.type, c.type};
  }
  LinearFusion fusion() const {
    LinearFusion f;
    if (c.norm)
      f.norm = norm.device.as<float>(), f.eps = kEps, f.norm_offset = kOffset;
    return f;
  }
  std::vector<double> product() const { // [M, N]
    std::vector<double> result, row(c.K);
    for (int64_t m = 0; m < c.M; ++m) {
      double square = 0;
      for (int64_t k = 0; k < c.K; ++k) {
        row[k] = x.host[m * ld_in + k];
        square += row[k] * row[k];
      }
      for (int64_t k = 0; c.norm && k < c.K; ++k)
        row[k] *= (double(norm.host[k]) + kOffset) / std::sqrt(square / double(c.K) + kEps);
      for (int64_t n = 0; n < c.N; ++n) {
        double sums[8] = {}; // eight chains, for speed
        for (int64_t k = 0; k < c.K; k += 8)
          for (int i = 0; i < 8; ++i)
            sums[i] += row[k + i] * w.host[n * c.K + k + i];
        result.push_back((c.bias ? b.host[n] : 0) + std::accumulate(sums, sums + 8, 0.0));
      }
    }
    return result;
  }

private:
  static std::vector<float> rows(int64_t M, int64_t ld) {
    std::vector<float> values = random_floats(static_cast<size_t>(M * ld), 1);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] *= 0.5f + static_cast<float>(i / static_cast<size_t>(ld) % 5);
    return values;
  }
};

std::string describe(const Case &c) {
  return "M " + std::to_string(c.M) + " N " + std::to_string(c.N) + " K " + std::to_string(c.K) + (c.type == DType::f16 ? " f16" : " bf16") +
         (c.bias ? " bias" : "") + (c.norm ? " norm" : "");
}

void run(const Linear &p, const LinearFusion &f) {
  ASSERT_TRUE(fused_linear_applies(p, f));
  fused_linear(p, f, nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
}

void check_sum(const Case &c, bool add) {
  SCOPED_TRACE(describe(c) + (add ? " add" : ""));
  const Operands o(c, c.N + 3);
  Tensor out(c.M * o.ld_out, c.type, 5);
  LinearFusion f = o.fusion();
  f.add = add;
  run(o.call(out.device.get()), f);
  const std::vector<double> product = o.product();
  std::vector<double> want;
  for (int64_t m = 0; m < c.M; ++m)
    for (int64_t n = 0; n < o.ld_out; ++n) // what lies between rows stays
      want.push_back(n >= c.N ? out.host[m * o.ld_out + n] : product[m * c.N + n] + (add ? out.host[m * o.ld_out + n] : 0.0f));
  EXPECT_LT(relative_error(out.read(), want), tolerance(c.type) * 1.5);
}

void check_gate(const Case &c, Activation kind) {
  SCOPED_TRACE(describe(c) + " gate");
  const int64_t F = c.N / 2;
  const Operands o(c, F + 3);
  Tensor out(c.M * o.ld_out, c.type, 5);
  LinearFusion f = o.fusion();
  f.gated = true, f.kind = kind;
  run(o.call(out.device.get()), f);
  const std::vector<double> product = o.product();
  std::vector<double> want;
  for (int64_t m = 0; m < c.M; ++m)
    for (int64_t n = 0; n < o.ld_out; ++n) {
      if (n >= F) {
        want.push_back(out.host[m * o.ld_out + n]);
        continue;
      }
      const double g = product[m * c.N + n];
      const double a = kind == Activation::silu        ? g / (1 + std::exp(-g))
                       : kind == Activation::gelu_tanh ? 0.5 * g * (1 + std::tanh(0.7978845608028654 * (g + 0.044715 * g * g * g)))
                                                       : 0.5 * g * (1 + std::erf(g * 0.7071067811865476));
      want.push_back(a * product[m * c.N + F + n]);
    }
  EXPECT_LT(relative_error(out.read(), want), tolerance(c.type) * 2);
}

void check_rope(Case c, int q_heads, int kv_heads, int dim) {
  c.N = int64_t(q_heads + 2 * kv_heads) * dim;
  SCOPED_TRACE(describe(c) + " heads of " + std::to_string(dim));
  const int64_t page_size = 16, pages = 40, Q = int64_t(q_heads) * dim, KV = int64_t(kv_heads) * dim;
  const Operands o(c, c.N + 8);
  Tensor out(c.M * o.ld_out, c.type, 5), pool(pages * 2 * KV * page_size, c.type, 6);
  std::vector<int32_t> positions;
  std::vector<int64_t> slots;
  std::vector<float> frequencies;
  for (int64_t m = 0; m < c.M; ++m) {
    positions.push_back(static_cast<int32_t>(m * 7919 % 100003));
    slots.push_back(m % 5 == 4 ? -1 : m * 37 % (pages * page_size));
  }
  for (int i = 0; i < dim / 2; ++i)
    frequencies.push_back(std::pow(10000.0f, -2.0f * float(i) / float(dim)));
  DeviceBytes d_positions(positions.data(), positions.size() * 4), d_slots(slots.data(), slots.size() * 8);
  DeviceBytes d_frequencies(frequencies.data(), frequencies.size() * 4);
  char *q = out.device.as<char>();
  const Rope rope = {q, q + Q * 2, o.ld_out, o.ld_out, d_positions.as<int32_t>(), d_frequencies.as<float>(), nullptr, nullptr, 1.5f,
                     1e-6f, c.M, q_heads, kv_heads, dim, dim, false, c.type};
  const KvAppend append = {{pool.device.get(), 2 * KV * page_size * 2, c.type, kv_heads, int(page_size), dim}, q + Q * 2,
                           q + (Q + KV) * 2, o.ld_out, o.ld_out, d_slots.as<int64_t>(), c.M, c.type};
  LinearFusion f = o.fusion();
  f.rope = &rope, f.append = &append;
  run(o.call(out.device.get()), f);

  const std::vector<double> product = o.product();
  std::vector<double> want(out.host.begin(), out.host.end()), want_pool(pool.host.begin(), pool.host.end());
  for (int64_t m = 0; m < c.M; ++m)
    for (int64_t n = 0; n < c.N; ++n) {
      const int64_t head = n / dim, i = n % dim, half = dim / 2;
      double value = product[m * c.N + n];
      if (head < q_heads + kv_heads) {
        const double angle = double(positions[m]) * double(frequencies[i % half]), other = product[m * c.N + head * dim + (i + half) % dim];
        value = 1.5 * (value * std::cos(angle) + (i < half ? -other : other) * std::sin(angle));
      }
      want[m * o.ld_out + n] = value;
      if (head >= q_heads && slots[m] >= 0)
        want_pool[slots[m] / page_size * 2 * KV * page_size + ((head - q_heads) * page_size + slots[m] % page_size) * dim + i] = value;
    }
  EXPECT_LT(relative_error(out.read(), want), tolerance(c.type) * 1.5);
  EXPECT_LT(relative_error(pool.read(), want_pool), tolerance(c.type) * 1.5);
}

constexpr int64_t kRows[] = {1, 2, 3, 8, 9, 16};

// K that is no multiple of 64; N that is none of 16, as uneven shards are.
TEST(FusedLinear, NormAndSum) {
  for (int64_t M : kRows)
    for (auto [N, K] : {std::pair<int64_t, int64_t>{18, 40}, {96, 576}, {70, 1544}, {590, 1032}})
      for (bool add : {false, true}) {
        check_sum({M, N, K, DType::bf16, M % 2 == 0, true}, add);
        check_sum({M, N, K, DType::bf16, M % 2 == 1, false}, add);
        check_sum({M, N, K, DType::f16, M % 2 == 1, false}, add);
      }
  for (bool norm : {false, true}) {
    check_sum({1, 40011, 512, DType::bf16, true, norm}, true);  // more tiles than blocks
    check_sum({2, 3584, 8200, DType::bf16, true, norm}, true);  // clusters
    check_sum({1, 576, 1536, DType::bf16, false, norm}, true);
    check_sum({9, 3584, 4736, DType::bf16, false, norm}, true);
  }
}

TEST(FusedLinear, Gate) {
  for (int64_t M : kRows)
    for (auto [N, K] : {std::pair<int64_t, int64_t>{18, 40}, {96, 576}, {70, 1544}, {1180, 1032}}) {
      check_gate({M, N, K, DType::bf16, M % 2 == 1, false}, Activation::silu);
      check_gate({M, N, K, DType::bf16, M % 2 == 0, true}, Activation::silu);
      check_gate({M, N, K, DType::f16, M % 2 == 0, false}, Activation::silu);
    }
  for (bool norm : {false, true}) {
    check_gate({2, 300, 576, DType::bf16, true, norm}, Activation::gelu_tanh);
    check_gate({5, 300, 576, DType::bf16, true, norm}, Activation::gelu);
    check_gate({1, 40000, 512, DType::bf16, false, norm}, Activation::silu); // more tiles than blocks
    check_gate({1, 3584, 8200, DType::bf16, true, norm}, Activation::silu);  // clusters
  }
}

TEST(FusedLinear, Rope) {
  for (int64_t M : kRows)
    for (auto [q, kv, dim] : {std::tuple<int, int, int>{9, 3, 64}, {3, 1, 80}, {7, 2, 96}, {5, 1, 128}, {2, 2, 256}})
      for (bool norm : {false, true})
        check_rope({M, 0, 576, DType::bf16, M % 2 == 1, norm}, q, kv, dim);
  check_rope({2, 0, 1544, DType::f16, true, false}, 9, 3, 64);
  check_rope({1, 0, 3584, DType::bf16, true, true}, 28, 4, 128);
  check_rope({1, 0, 8192, DType::bf16, true, true}, 8, 1, 128);  // clusters
  check_rope({16, 0, 256, DType::bf16, true, true}, 130, 6, 128); // more tiles than blocks
}

// What it does not apply to.
TEST(FusedLinear, Limits) {
  Tensor x(32 * 4096, DType::bf16, 1), w(64 * 4096, DType::bf16, 2), norm(4096, DType::f32, 3);
  DeviceBytes out(32 * 64 * 4);
  LinearFusion gate, sum, normed, both;
  gate.gated = true, sum.add = true, normed.norm = norm.device.as<float>(), both.add = both.gated = true;
  auto takes = [&](int64_t M, int64_t N, int64_t K, DType type, DType out_type, const LinearFusion &f) {
    return fused_linear_applies({out.get(), N, x.device.get(), K, w.device.get(), nullptr, M, N, K, type, type, out_type}, f);
  };
  for (const LinearFusion &f : {gate, sum, normed}) {
    EXPECT_FALSE(takes(17, 64, 4096, DType::bf16, DType::bf16, f)); // rows
    EXPECT_FALSE(takes(0, 64, 4096, DType::bf16, DType::bf16, f));
    EXPECT_FALSE(takes(1, 64, 4095, DType::bf16, DType::bf16, f)); // alignment
    EXPECT_FALSE(takes(1, 64, 4096, DType::f32, DType::f32, f));   // types
    EXPECT_FALSE(takes(1, 64, 4096, DType::bf16, DType::f32, f));
    EXPECT_TRUE(takes(16, 64, 4096, DType::bf16, DType::bf16, f));
  }
  EXPECT_FALSE(takes(1, 63, 4096, DType::bf16, DType::bf16, gate)); // no halves
  EXPECT_FALSE(takes(1, 64, 4096, DType::bf16, DType::bf16, both));
  EXPECT_FALSE(takes(1, 64, 4096, DType::f16, DType::f16, normed)); // no room for what is not normalised yet
  EXPECT_TRUE(takes(1, 64, 4096, DType::f16, DType::f16, gate));

  // Rotations that are not of whole heads in halves, or of other rows.
  Rope rope = {out.get(), out.as<char>() + 32 * 2, 64, 64, nullptr, nullptr, nullptr, nullptr, 1, 1e-6f, 1, 2, 1, 16, 16, false, DType::bf16};
  KvAppend append = {{nullptr, 0, DType::bf16, 1, 16, 16}, rope.k, out.as<char>() + 48 * 2, 64, 64, nullptr, 1, DType::bf16};
  LinearFusion rotated;
  rotated.rope = &rope, rotated.append = &append;
  const auto applies = [&] { return takes(1, 64, 4096, DType::bf16, DType::bf16, rotated); };
  EXPECT_TRUE(applies());
  rope.interleaved = true;
  EXPECT_FALSE(applies());
  rope.interleaved = false, rope.rotary_dim = 8;
  EXPECT_FALSE(applies());
  rope.rotary_dim = 16, rope.q_norm = norm.device.as<float>();
  EXPECT_FALSE(applies());
  rope.q_norm = nullptr, append.pool.type = DType::f32;
  EXPECT_FALSE(applies());
  append.pool.type = DType::bf16, append.ld_v = 128;
  EXPECT_FALSE(applies());
}

} // namespace
} // namespace llmrt::cuda::testing
