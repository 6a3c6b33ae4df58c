// The tiling proof against a grid that counts every cell.
#include "runtime/plan/tiling.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

using namespace llmrt::plan;

namespace {

TEST(Tiling, Cases) {
  EXPECT_FALSE(check_tiling({{0, 4, 0, 6}}, 4, 6, false));
  EXPECT_FALSE(check_tiling({{0, 2, 0, 6}, {2, 2, 0, 3}, {2, 2, 3, 3}}, 4, 6, false));
  auto gap = check_tiling({{0, 2, 0, 6}, {2, 2, 0, 3}}, 4, 6, false);
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->kind, TilingFault::Gap);
  EXPECT_EQ(gap->row, 2u);
  EXPECT_EQ(gap->col, 3u);
  auto overlap = check_tiling({{0, 4, 0, 6}, {3, 1, 5, 1}}, 4, 6, false);
  ASSERT_TRUE(overlap);
  EXPECT_EQ(overlap->kind, TilingFault::Overlap);
  EXPECT_EQ(overlap->row, 3u);
  EXPECT_EQ(overlap->col, 5u);
  EXPECT_EQ(overlap->a, 0u);
  EXPECT_EQ(overlap->b, 1u);
  EXPECT_FALSE(check_tiling({{0, 4, 0, 6}, {3, 1, 5, 1}}, 4, 6, true));
  EXPECT_EQ(check_tiling({}, 4, 6, true)->kind, TilingFault::Gap);
  EXPECT_EQ(check_tiling({{1, 3, 0, 6}}, 4, 6, false)->row, 0u);
}

TEST(Tiling, OutsideWithoutOverflow) {
  EXPECT_EQ(check_tiling({{UINT64_MAX, 2, 0, 6}}, 4, 6, false)->kind, TilingFault::Outside);
  EXPECT_EQ(check_tiling({{0, UINT64_MAX, 0, 6}}, 4, 6, false)->kind, TilingFault::Outside);
  EXPECT_EQ(check_tiling({{0, 4, 2, UINT64_MAX - 1}}, 4, 6, false)->kind, TilingFault::Outside);
  EXPECT_EQ(check_tiling({{0, 4, 0, 0}}, 4, 6, false)->kind, TilingFault::Outside);
  EXPECT_FALSE(check_tiling({{0, UINT64_MAX, 0, UINT64_MAX}}, UINT64_MAX, UINT64_MAX, false));
}

TEST(Tiling, RandomAgainstGrid) {
  std::mt19937 random(7);
  auto pick = [&](uint64_t n) { return uint64_t(random() % n); };
  int valid = 0;
  for (int round = 0; round < 3000; ++round) {
    uint64_t rows = 1 + pick(6), cols = 1 + pick(6);
    std::vector<Box> boxes = {{0, rows, 0, cols}};
    for (uint64_t cuts = pick(5); cuts > 0; --cuts) { // cut a box in two, so that tilings are common
      Box &box = boxes[pick(boxes.size())], other = box;
      if (pick(2) && box.rows > 1) {
        box.rows = 1 + pick(box.rows - 1);
        other.row = box.row + box.rows, other.rows -= box.rows;
      } else if (box.cols > 1) {
        box.cols = 1 + pick(box.cols - 1);
        other.col = box.col + box.cols, other.cols -= box.cols;
      } else {
        continue;
      }
      boxes.push_back(other);
    }
    if (pick(2)) { // and spoil half of them
      Box &box = boxes[pick(boxes.size())];
      (pick(2) ? box.row : box.col) = pick(4);
    }
    std::vector<int> grid(rows * cols, 0);
    bool inside = true;
    for (const Box &box : boxes) {
      inside &= box.row + box.rows <= rows && box.col + box.cols <= cols;
      for (uint64_t r = box.row; r < std::min(rows, box.row + box.rows); ++r)
        for (uint64_t c = box.col; c < std::min(cols, box.col + box.cols); ++c)
          ++grid[r * cols + c];
    }
    bool covered = inside, exact = inside;
    for (int count : grid) {
      covered &= count >= 1;
      exact &= count == 1;
    }
    EXPECT_EQ(!check_tiling(boxes, rows, cols, false), exact);
    EXPECT_EQ(!check_tiling(boxes, rows, cols, true), covered);
    valid += exact;
  }
  EXPECT_GT(valid, 500);
}

// 200,000 boxes take well under a second: the proof is near-linear.
TEST(Tiling, Many) {
  std::vector<Box> boxes;
  for (uint64_t r = 0; r < 1000; ++r)
    for (uint64_t c = 0; c < 200; ++c)
      boxes.push_back({r * 3, 3, c * 5, 5});
  auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(check_tiling(boxes, 3000, 1000, false));
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 10.0);
}

} // namespace
