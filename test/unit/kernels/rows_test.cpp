// Norms, rope, activations, additions against double-precision loops, within a few units in the last place
// of the largest term; strides, in-place use and independence of the team included.
#include <cmath>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/rope.h"
#include "test/unit/kernels/support.h"

using namespace llmrt::cpu;
using namespace llmrt::cpu::test;

namespace {

class RowsTest : public EachIsa {};

constexpr int64_t kWidths[] = {1, 3, 16, 47, 64, 100, 576, 1537};

TEST_P(RowsTest, RmsNorm) {
  for (int64_t H : kWidths)
    for (int64_t T : {0, 1, 3, 70})
      for (float offset : {0.0f, 1.0f}) {
        Team team(2);
        const int64_t in_ld = H + 3, out_ld = H + 1;
        Guarded<float> in(static_cast<size_t>(T ? (T - 1) * in_ld + H : 1)), w(static_cast<size_t>(H)),
            out(static_cast<size_t>(T ? (T - 1) * out_ld + H : 1));
        randomize(in, 1, 3);
        randomize(w, 2);
        out.fill(5);
        rms_norm(team, out.data(), out_ld, in.data(), in_ld, w.data(), 1e-5f, offset, T, H);
        for (int64_t t = 0; t < T; t++) {
          double ss = 0;
          for (int64_t i = 0; i < H; i++)
            ss += std::pow(static_cast<double>(in[static_cast<size_t>(t * in_ld + i)]), 2);
          const double inv = 1 / std::sqrt(ss / static_cast<double>(H) + 1e-5f);
          for (int64_t i = 0; i < H; i++) {
            const double want = in[static_cast<size_t>(t * in_ld + i)] * inv *
                                (static_cast<double>(w[static_cast<size_t>(i)]) + offset);
            ASSERT_NEAR(out[static_cast<size_t>(t * out_ld + i)], want, 1e-6 * (std::fabs(want) + 1e-6))
                << H << " " << i;
          }
          if (t + 1 < T) {
            ASSERT_EQ(out[static_cast<size_t>(t * out_ld + H)], 5);
          }
        }
      }
}

TEST_P(RowsTest, AddRmsNormEqualsAddThenNorm) {
  for (int64_t H : kWidths)
    for (int64_t T : {1, 3, 70}) {
      Team team(2), one(1);
      const size_t n = static_cast<size_t>(T * H);
      Guarded<float> in(n), res(n), w(static_cast<size_t>(H)), out(n), sum(n), want(n);
      randomize(in, 1);
      randomize(res, 2);
      randomize(w, 3);
      add(one, sum.data(), H, res.data(), H, in.data(), H, T, H);
      for (size_t i = 0; i < n; i++)
        ASSERT_EQ(sum[i], res[i] + in[i]);
      rms_norm(one, want.data(), H, sum.data(), H, w.data(), 1e-6f, 0, T, H);
      add_rms_norm(team, in.data(), H, res.data(), H, in.data(), H, w.data(), 1e-6f, 0, T, H); // out is in
      ASSERT_TRUE(same_bits(res.data(), sum.data(), n));
      ASSERT_TRUE(same_bits(in.data(), want.data(), n));
    }
}

TEST_P(RowsTest, RopeTableIsExactForLargePositions) {
  const int32_t positions[] = {0, 1, 1000, 131071, 1000000};
  Guarded<float> freq(16), table(5 * 32);
  for (size_t i = 0; i < 16; i++)
    freq[i] = static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / 16));
  for (int threads : {1, 3}) {
    Team team(threads);
    table.poison();
    rope_table(team, table.data(), positions, freq.data(), 1.5f, 5, 32);
    for (size_t t = 0; t < 5; t++)
      for (size_t i = 0; i < 16; i++) {
        const long double angle = static_cast<long double>(positions[t]) * static_cast<long double>(freq[i]);
        ASSERT_NEAR(table[t * 32 + i], static_cast<double>(cosl(angle)) * 1.5, 1.5e-7);
        ASSERT_NEAR(table[t * 32 + 16 + i], static_cast<double>(sinl(angle)) * 1.5, 1.5e-7);
      }
  }
}

TEST_P(RowsTest, Rope) {
  struct Shape {
    int head_dim, rotary_dim;
  };
  for (Shape s : {Shape{64, 64}, {128, 128}, {100, 100}, {80, 32}, {6, 2}, {96, 48}})
    for (RopeStyle style : {RopeStyle::halves, RopeStyle::pairs})
      for (bool norm : {false, true})
        for (int64_t T : {1, 5, 300}) {
          Team team(2);
          const int heads = 3, half = s.rotary_dim / 2;
          const int64_t ld = heads * s.head_dim + 7;
          Guarded<float> x(static_cast<size_t>((T - 1) * ld + heads * s.head_dim)),
              w(static_cast<size_t>(s.head_dim)), freq(static_cast<size_t>(half)),
              table(static_cast<size_t>(T * s.rotary_dim));
          randomize(x, 1);
          randomize(w, 2);
          std::vector<float> before(x.data(), x.data() + x.size());
          for (int i = 0; i < half; i++)
            freq[static_cast<size_t>(i)] = 1.0f / static_cast<float>(1 + 3 * i);
          std::vector<int32_t> pos(static_cast<size_t>(T));
          for (int64_t t = 0; t < T; t++)
            pos[static_cast<size_t>(t)] = static_cast<int32_t>(t * 3 + 1);
          rope_table(team, table.data(), pos.data(), freq.data(), 1, T, s.rotary_dim);
          rope(team, {.x = x.data(),
                      .x_stride = ld,
                      .table = table.data(),
                      .T = T,
                      .heads = heads,
                      .head_dim = s.head_dim,
                      .rotary_dim = s.rotary_dim,
                      .style = style,
                      .norm_weight = norm ? w.data() : nullptr,
                      .norm_eps = 1e-6f});
          for (int64_t t = 0; t < T; t++)
            for (int h = 0; h < heads; h++) {
              const int64_t at = t * ld + h * s.head_dim;
              std::vector<double> v(static_cast<size_t>(s.head_dim));
              double ss = 0;
              for (size_t d = 0; d < v.size(); d++) {
                v[d] = before[static_cast<size_t>(at) + d];
                ss += v[d] * v[d];
              }
              if (norm)
                for (size_t d = 0; d < v.size(); d++)
                  v[d] *= w[d] / std::sqrt(ss / s.head_dim + 1e-6f);
              for (int i = 0; i < half; i++) {
                const size_t a = static_cast<size_t>(style == RopeStyle::halves ? i : 2 * i);
                const size_t b = static_cast<size_t>(style == RopeStyle::halves ? i + half : 2 * i + 1);
                const double angle = static_cast<double>(pos[static_cast<size_t>(t)]) *
                                     static_cast<double>(freq[static_cast<size_t>(i)]);
                const double p = v[a] * std::cos(angle) - v[b] * std::sin(angle);
                v[b] = v[b] * std::cos(angle) + v[a] * std::sin(angle);
                v[a] = p;
              }
              for (size_t d = 0; d < v.size(); d++)
                ASSERT_NEAR(x[static_cast<size_t>(at) + d], v[d], 2e-6) << "dim " << d;
            }
          for (int64_t t = 0; t + 1 < T; t++)
            for (int64_t i = heads * s.head_dim; i < ld; i++)
              ASSERT_EQ(x[static_cast<size_t>(t * ld + i)], before[static_cast<size_t>(t * ld + i)]);
        }
}

double reference_act(Act a, double x) {
  switch (a) {
  case Act::silu:
    return x / (1 + std::exp(-x));
  case Act::gelu:
    return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  case Act::gelu_tanh:
    return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
  }
  return 0;
}

TEST_P(RowsTest, GatedAct) {
  for (Act a : {Act::silu, Act::gelu_tanh, Act::gelu})
    for (int64_t F : kWidths)
      for (int64_t T : {0, 1, 40}) {
        Team team(3);
        Guarded<float> fused(static_cast<size_t>(T ? T * 2 * F : 1)), out(static_cast<size_t>(T ? T * F : 1));
        randomize(fused, 1, 4);
        if (T == 1) {
          fused[0] = -200.0f; // far ends
          if (F > 1)
            fused[1] = 200.0f;
        }
        out.poison();
        gated_act(team, a, out.data(), F, fused.data(), 2 * F, fused.data() + F, 2 * F, T, F);
        for (int64_t t = 0; t < T; t++)
          for (int64_t i = 0; i < F; i++) {
            const double g = fused[static_cast<size_t>(t * 2 * F + i)],
                         u = fused[static_cast<size_t>(t * 2 * F + F + i)];
            ASSERT_NEAR(out[static_cast<size_t>(t * F + i)], reference_act(a, g) * u,
                        5e-7 * std::fabs(u) * (1 + std::fabs(g)));
          }
      }
}

TEST_P(RowsTest, SelectRows) {
  Team team(2);
  Guarded<float> in(5 * 9), out(3 * 11);
  randomize(in, 1);
  out.fill(1);
  const int32_t rows[] = {4, 0, 4};
  select_rows(team, out.data(), 11, in.data(), 9, rows, 3, 9);
  for (size_t r = 0; r < 3; r++)
    for (size_t i = 0; i < 11; i++)
      ASSERT_EQ(out[r * 11 + i], i < 9 ? in[static_cast<size_t>(rows[r]) * 9 + i] : 1.0f);
}

TEST_P(RowsTest, ExpWithinStatedError) {
  double worst = 0;
  std::vector<float> x, y;
  for (double v = -87.3; v < 88.7; v += 0.00037)
    x.push_back(static_cast<float>(v));
  y.resize(x.size());
  exp_f32(y.data(), x.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); i++) {
    const double want = std::exp(static_cast<double>(x[i]));
    worst = std::max(worst, std::fabs(y[i] - want) / want);
  }
  EXPECT_LT(worst, 1.2e-7);
  RecordProperty("worst_relative_error", std::to_string(worst));
  const float inf = INFINITY;
  Guarded<float> e(6);
  const float in[] = {-inf, -100.0f, 0.0f, 100.0f, inf, NAN};
  exp_f32(e.data(), in, 6);
  EXPECT_EQ(e[0], 0.0f);
  EXPECT_EQ(e[1], 0.0f);
  EXPECT_EQ(e[2], 1.0f);
  EXPECT_EQ(e[3], inf);
  EXPECT_EQ(e[4], inf);
  EXPECT_TRUE(std::isnan(e[5]));
}

// Rows alone, in a batch, and over teams: the same bits.
TEST_P(RowsTest, RowsDoNotDependOnTheBatch) {
  constexpr int64_t T = 130, H = 331;
  Guarded<float> in(T * H), w(H), one_by_one(T * H), batch(T * H);
  randomize(in, 1);
  randomize(w, 2);
  Team one(1), three(3);
  rms_norm(three, batch.data(), H, in.data(), H, w.data(), 1e-5f, 0, T, H);
  for (int64_t t = 0; t < T; t++)
    rms_norm(one, one_by_one.data() + t * H, H, in.data() + t * H, H, w.data(), 1e-5f, 0, 1, H);
  EXPECT_TRUE(same_bits(batch.data(), one_by_one.data(), T * H));
  gated_act(three, Act::silu, batch.data(), H, in.data(), H, in.data(), H, T, H);
  for (int64_t t = 0; t < T; t++)
    gated_act(one, Act::silu, one_by_one.data() + t * H, H, in.data() + t * H, H, in.data() + t * H, H, 1, H);
  EXPECT_TRUE(same_bits(batch.data(), one_by_one.data(), T * H));
}

INSTANTIATE_EACH_ISA(RowsTest);

} // namespace
