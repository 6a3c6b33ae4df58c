// Teams: every part runs exactly once, also with more threads than cores and after the workers have slept;
// chunks cover their range once; many teams live side by side.
#include "kernels/cpu/team.h"

#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/isa.h"

using llmrt::cpu::Team;

namespace {

TEST(Team, EveryPartOnce) {
  for (int n : {1, 2, 3, 7}) {
    Team team(n);
    std::vector<int> counts(static_cast<size_t>(n), 0);
    for (int i = 0; i < 500; i++)
      team.parallel([&](int part, int parts) {
        ASSERT_EQ(parts, n);
        counts[static_cast<size_t>(part)]++;
      });
    for (int c : counts)
      EXPECT_EQ(c, 500);
  }
}

TEST(Team, WakesAfterSleep) {
  Team team(3);
  for (int i = 0; i < 5; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3)); // far longer than the workers spin
    std::atomic<int> sum{0};
    team.parallel([&](int part, int) {
      if (part == 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(2)); // the caller sleeps too
      sum += part + 1;
    });
    EXPECT_EQ(sum, 6);
  }
}

TEST(Team, ChunksCoverTheRangeOnce) {
  Team team(2);
  for (int64_t count : {0, 1, 7, 64, 1001})
    for (int64_t grain : {1, 8, 100}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      team.for_each_chunk(count, grain, [&](int64_t b, int64_t e, int part) {
        EXPECT_LE(e - b, grain);
        EXPECT_LT(part, 2);
        for (; b < e; b++)
          hits[static_cast<size_t>(b)]++;
      });
      for (auto &h : hits)
        EXPECT_EQ(h, 1);
    }
}

TEST(Team, ManyTeamsAtOnce) {
  std::vector<std::thread> ranks;
  std::atomic<int64_t> total{0};
  for (int r = 0; r < 6; r++)
    ranks.emplace_back([&] {
      Team team(2);
      for (int i = 0; i < 300; i++)
        team.parallel([&](int, int) { total++; });
    });
  for (auto &t : ranks)
    t.join();
  EXPECT_EQ(total, 6 * 300 * 2);
}

TEST(Team, ScratchGrowsAndIsAligned) {
  Team team(1);
  void *a = team.scratch(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(team.scratch(50), a);
  EXPECT_EQ(team.scratch_bytes(), 128u);
  team.scratch(100000);
  EXPECT_EQ(team.scratch_bytes(), 100032u);
}

TEST(Team, RefusesNoThreads) {
  EXPECT_THROW(Team(0), std::invalid_argument);
}

TEST(Isa, PlainIsAlwaysThereAndOrderRises) {
  const auto isas = llmrt::cpu::available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas[0], llmrt::cpu::Isa::plain);
  for (size_t i = 1; i < isas.size(); i++)
    EXPECT_LT(isas[i - 1], isas[i]);
}

} // namespace
