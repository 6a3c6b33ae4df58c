// The arena plan over random lifetimes: nothing that lives together shares a byte, and the size lies between
// what must be there at once and what separate buffers would take.
#include "passes/analysis/Liveness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace llmc;

namespace {

uint64_t aligned(uint64_t n, uint64_t a) {
  return (n + a - 1) / a * a;
}

uint64_t peak(const std::vector<LiveRange> &ranges) {
  uint64_t most = 0;
  for (const LiveRange &at : ranges) { // the sum rises only where a range begins
    uint64_t sum = 0;
    for (const LiveRange &r : ranges)
      if (r.firstOp <= at.firstOp && at.firstOp <= r.lastOp)
        sum += r.bytes;
    most = std::max(most, sum);
  }
  return most;
}

void checkPlan(const std::vector<LiveRange> &ranges, uint64_t size, uint64_t alignment) {
  uint64_t naive = 0;
  for (const LiveRange &r : ranges) {
    naive += aligned(r.bytes, alignment);
    ASSERT_EQ(r.offset % alignment, 0u);
    ASSERT_LE(r.offset + r.bytes, size);
  }
  ASSERT_LE(size, naive);
  ASSERT_GE(size, peak(ranges));
  for (size_t a = 0; a < ranges.size(); ++a)
    for (size_t b = a + 1; b < ranges.size(); ++b) {
      const LiveRange &x = ranges[a], &y = ranges[b];
      bool together = x.firstOp <= y.lastOp && y.firstOp <= x.lastOp;
      bool shared = x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
      ASSERT_FALSE(together && shared) << "ops [" << x.firstOp << ", " << x.lastOp << "] bytes [" << x.offset
                                       << ", +" << x.bytes << ") and ops [" << y.firstOp << ", " << y.lastOp
                                       << "] bytes [" << y.offset << ", +" << y.bytes << ")";
    }
}

TEST(PlanArena, RandomLifetimes) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    uint64_t alignment = uint64_t(1) << random() % 9;
    int64_t ops = 1 + static_cast<int64_t>(random() % 60);
    int64_t longest = 1 + static_cast<int64_t>(random() % ops);
    uint64_t largest = 1 + random() % 5000;
    std::vector<LiveRange> ranges(random() % 50);
    for (LiveRange &r : ranges) {
      r.firstOp = static_cast<int64_t>(random() % ops);
      r.lastOp = std::min<int64_t>(ops - 1, r.firstOp + static_cast<int64_t>(random() % longest));
      r.bytes = random() % largest + 1;
      r.offset = random(); // whatever stood there before
    }
    uint64_t size = planArena(ranges, alignment);
    checkPlan(ranges, size, alignment);
    if (::testing::Test::HasFatalFailure())
      return;
  }
}

TEST(PlanArena, BuffersOneAfterTheOtherShareTheirBytes) {
  std::vector<LiveRange> ranges;
  for (int64_t i = 0; i < 100; ++i)
    ranges.push_back({i, i, 1000, 0});
  EXPECT_EQ(planArena(ranges, 256), 1024u);
}

TEST(PlanArena, AChainNeedsTwo) {
  std::vector<LiveRange> ranges;
  for (int64_t i = 0; i < 100; ++i)
    ranges.push_back({i, i + 1, 1024, 0});
  EXPECT_EQ(planArena(ranges, 256), 2048u);
}

TEST(PlanArena, ASmallBufferGoesIntoAGap) {
  // a and b live together, c takes a's place beside b, and d (with c) fits in what c leaves of it.
  std::vector<LiveRange> ranges{{0, 1, 1024, 0}, {0, 3, 1000, 0}, {2, 3, 512, 0}, {2, 3, 256, 0}};
  EXPECT_EQ(planArena(ranges, 256), 2048u);
  checkPlan(ranges, 2048, 256);
}

TEST(PlanArena, NothingNeedsNothing) {
  std::vector<LiveRange> none;
  EXPECT_EQ(planArena(none, 256), 0u);
}

} // namespace
