// The row passes against plain loops, at lengths around the block and lane sizes.
#include "runtime/sample/row_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace llmrt::sample;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const size_t kSizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 49152, 49153};

std::vector<float> random_row(size_t n, uint32_t seed, float scale = 5) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> x(n);
  for (float &v : x)
    v = normal(rng);
  return x;
}

TEST(RowOps, MaxBlockMaxAndFirstIndex) {
  for (size_t n : kSizes) {
    auto x = random_row(n, static_cast<uint32_t>(n));
    size_t best = 0;
    for (size_t i = 0; i < n; ++i)
      if (x[i] > x[best])
        best = i;
    x[n - 1] = x[best]; // a tie further up must not win
    std::vector<float> blocks(num_blocks(n));
    RowMax max = row_max(x.data(), n, blocks.data());
    EXPECT_EQ(max.value, x[best]);
    EXPECT_FALSE(max.has_nan);
    EXPECT_EQ(first_equal(x.data(), n, max.value, blocks.data()), best);
    for (size_t b = 0; b < blocks.size(); ++b) {
      float expected = -kInf;
      for (size_t i = b * kBlock; i < std::min(n, (b + 1) * kBlock); ++i)
        expected = std::max(expected, x[i]);
      EXPECT_EQ(blocks[b], expected);
    }
  }
}

TEST(RowOps, FindsANaNAnywhere) {
  for (size_t n : {1u, 17u, 64u, 200u}) {
    for (size_t at = 0; at < n; ++at) {
      auto x = random_row(n, 1);
      x[at] = std::nanf("");
      std::vector<float> blocks(num_blocks(n));
      EXPECT_TRUE(row_max(x.data(), n, blocks.data()).has_nan) << n << " " << at;
    }
  }
}

TEST(RowOps, ExpMatchesTheLibrary) {
  for (size_t n : kSizes)
    for (float inv_t : {1.0f, 0.25f, 7.0f}) {
      auto x = random_row(n, static_cast<uint32_t>(n) + 1);
      x[n / 2] = -kInf;
      std::vector<float> blocks(num_blocks(n)), out(n);
      std::vector<double> sums(num_blocks(n));
      float max = row_max(x.data(), n, blocks.data()).value;
      if (max == -kInf)
        max = 0;
      double total = row_exp(x.data(), n, max, inv_t, out.data(), sums.data());
      double expected_total = 0;
      for (size_t i = 0; i < n; ++i) {
        float v = (x[i] - max) * inv_t;
        double expected = v < -87 ? 0 : std::exp(static_cast<double>(v));
        EXPECT_NEAR(out[i], expected, 2e-7 * expected);
        EXPECT_EQ(out[i], exp_one(x[i], max, inv_t));
        expected_total += expected;
      }
      EXPECT_NEAR(total, expected_total, 1e-6 * expected_total);
      double without = row_exp(x.data(), n, max, inv_t, nullptr, sums.data());
      EXPECT_EQ(without, total);
    }
}

TEST(RowOps, ExpOverItsWholeRange) {
  for (float v = 0; v > -100; v -= 0.00137f) {
    double expected = v < -87 ? 0 : std::exp(static_cast<double>(v));
    EXPECT_NEAR(exp_one(v, 0, 1), expected, 2e-7 * expected) << v;
  }
  EXPECT_EQ(exp_one(0, 0, 1), 1.0f);
  EXPECT_EQ(exp_one(-kInf, 0, 1), 0.0f);
}

TEST(RowOps, MassAboveAThreshold) {
  for (size_t n : kSizes) {
    std::vector<float> w = random_row(n, static_cast<uint32_t>(n) + 3, 1);
    for (float &v : w)
      v = std::fabs(v);
    for (float threshold : {0.0f, 0.5f, w[n / 2], 100.0f}) {
      std::vector<double> sums(num_blocks(n));
      double expected = 0, total = row_mass(w.data(), n, threshold, sums.data()), blocks = 0;
      for (float v : w)
        expected += v >= threshold ? v : 0;
      for (double s : sums)
        blocks += s;
      EXPECT_NEAR(total, expected, 1e-6 * expected);
      EXPECT_EQ(total, blocks);
    }
  }
}

TEST(RowOps, CountBetter) {
  for (size_t n : kSizes) {
    auto x = random_row(n, static_cast<uint32_t>(n) + 2, 1);
    for (float &v : x)
      v = std::round(v * 4); // many ties
    for (size_t token : {size_t{0}, n / 3, n / 2, n - 1}) {
      size_t expected = 0;
      for (size_t i = 0; i < n; ++i)
        expected += x[i] > x[token] || (x[i] == x[token] && i < token);
      EXPECT_EQ(count_better(x.data(), n, x[token], token), expected) << n << " " << token;
    }
  }
}

} // namespace
