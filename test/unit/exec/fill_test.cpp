// Fill values: fixed for ever by name and index, independent of how they are asked for, with the spread promised.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/exec/fill.h"

using namespace llmrt;
using exec::fill_seed;
using exec::fill_values;

namespace {

TEST(Fill, DependsOnNameAndIndexOnly) {
  const uint64_t seed = fill_seed("model.layers.3.mlp.down_proj.weight");
  std::vector<float> whole(10000), piece(37);
  fill_values(whole.data(), plan::Fill::Normal, 0.02f, seed, 0, whole.size());
  for (const size_t first : {0, 1, 999, 9963}) {
    fill_values(piece.data(), plan::Fill::Normal, 0.02f, seed, first, piece.size());
    for (size_t i = 0; i < piece.size(); ++i)
      ASSERT_EQ(piece[i], whole[first + i]);
  }
  std::vector<float> other(whole.size());
  fill_values(other.data(), plan::Fill::Normal, 0.02f, fill_seed("another"), 0, other.size());
  size_t same = 0;
  for (size_t i = 0; i < whole.size(); ++i)
    same += whole[i] == other[i];
  EXPECT_LT(same, whole.size() / 1000);
}

TEST(Fill, NormalHasTheMeanAndSpreadItPromises) {
  std::vector<float> values(1 << 20);
  fill_values(values.data(), plan::Fill::Normal, 0.5f, fill_seed("x"), 12345, values.size());
  double sum = 0, squares = 0, fourth = 0, largest = 0, neighbours = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i] / 0.5;
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    largest = std::max(largest, std::fabs(x));
    if (i)
      neighbours += x * values[i - 1] / 0.5;
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.005);
  EXPECT_NEAR(squares / n, 1, 0.01);
  EXPECT_NEAR(fourth / n, 2.7, 0.05); // 3 for a true normal; 2.7 for the sum of four uniforms
  EXPECT_LT(largest, 3.47);
  EXPECT_NEAR(neighbours / n, 0, 0.005);
}

TEST(Fill, OnesAndZeros) {
  float values[3] = {7, 7, 7};
  fill_values(values, plan::Fill::Ones, 0.1f, 1, 5, 3);
  EXPECT_EQ(values[2], 1.0f);
  fill_values(values, plan::Fill::Zeros, 0.1f, 1, 5, 3);
  EXPECT_EQ(values[0], 0.0f);
}

} // namespace
