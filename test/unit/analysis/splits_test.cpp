// Splits of dimensions and heads, over many sizes: covered once, as even as their unit allows, in the order
// of ranks.
#include "passes/analysis/Splits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace llmc;

namespace {

std::string show(const llvm::SmallVector<Extent> &extents) {
  std::string text;
  for (const Extent &e : extents)
    text += std::to_string(e.begin) + "+" + std::to_string(e.size) + " ";
  return text;
}

// The unit that is used: the asked one, halved until there are as many units as parts.
int64_t usedUnit(int64_t total, int64_t parts, int64_t unit) {
  while (unit > 1 && (total + unit - 1) / unit < parts)
    unit /= 2;
  return unit;
}

void checkSplit(int64_t total, int64_t parts, int64_t unit) {
  auto extents = splitDimension(total, parts, unit);
  SCOPED_TRACE("total " + std::to_string(total) + " parts " + std::to_string(parts) + " unit " +
               std::to_string(unit) + ": " + show(extents));
  ASSERT_EQ(static_cast<int64_t>(extents.size()), parts);
  unit = usedUnit(total, parts, unit);
  int64_t end = 0, fewest = total, most = 0;
  for (const Extent &e : extents) {
    ASSERT_EQ(e.begin, end);
    ASSERT_GE(e.size, 1);
    ASSERT_EQ(e.begin % unit, 0);
    end = e.end();
    int64_t units = (e.size + unit - 1) / unit;
    fewest = std::min(fewest, units);
    most = std::max(most, units);
  }
  ASSERT_EQ(end, total);
  ASSERT_LE(most - fewest, 1);
  ASSERT_TRUE(std::is_sorted(extents.begin(), extents.end(), [&](const Extent &a, const Extent &b) {
    return (a.size + unit - 1) / unit > (b.size + unit - 1) / unit;
  }));
}

TEST(SplitDimension, CoversEveryElementOnceAndEvenly) {
  for (int64_t unit : {1, 2, 16, 32, 256})
    for (int64_t total = 1; total <= 130; ++total)
      for (int64_t parts = 1; parts <= std::min<int64_t>(total, 20); ++parts)
        checkSplit(total, parts, unit);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    int64_t total = 1 + static_cast<int64_t>(random() % 200000);
    int64_t parts = 1 + static_cast<int64_t>(random() % std::min<int64_t>(total, 64));
    checkSplit(total, parts, int64_t(1) << random() % 9);
  }
}

TEST(SplitDimension, WorkedExamples) {
  EXPECT_EQ(show(splitDimension(8, 3, 1)), "0+3 3+3 6+2 ");
  EXPECT_EQ(show(splitDimension(96, 2, 32)), "0+64 64+32 ");
  EXPECT_EQ(show(splitDimension(100, 2, 32)), "0+64 64+36 ");      // the last unit is a short one
  EXPECT_EQ(show(splitDimension(64, 3, 32)), "0+32 32+16 48+16 "); // two units of 32 are too few: units of 16
  EXPECT_EQ(show(splitDimension(7, 7, 32)), "0+1 1+1 2+1 3+1 4+1 5+1 6+1 ");
}

// Whole groups where there are KV heads enough; otherwise even query heads, and every KV head that these
// read.
void checkHeads(int64_t kvHeads, int64_t group, int64_t parts) {
  int64_t qHeads = kvHeads * group;
  SCOPED_TRACE(std::to_string(qHeads) + " query and " + std::to_string(kvHeads) + " KV heads over " +
               std::to_string(parts));
  auto heads = splitHeads(qHeads, kvHeads, parts);
  ASSERT_EQ(static_cast<int64_t>(heads.size()), parts);
  llvm::SmallVector<Extent> q;
  int64_t kvCovered = 0;
  for (const HeadExtents &h : heads) {
    q.push_back(h.q);
    ASSERT_EQ(h.kv.begin, h.q.begin / group);
    ASSERT_EQ(h.kv.end(), (h.q.end() - 1) / group + 1);
    ASSERT_LE(h.kv.begin, kvCovered);
    kvCovered = std::max(kvCovered, h.kv.end());
    if (kvHeads >= parts) {
      ASSERT_EQ(h.q.size, h.kv.size * group);
      ASSERT_TRUE(h.kv.size == kvHeads / parts || h.kv.size == (kvHeads + parts - 1) / parts);
    } else {
      ASSERT_TRUE(h.q.size == qHeads / parts || h.q.size == (qHeads + parts - 1) / parts);
    }
  }
  ASSERT_EQ(kvCovered, kvHeads);
  int64_t end = 0;
  for (const Extent &e : q) {
    ASSERT_EQ(e.begin, end);
    ASSERT_GE(e.size, 1);
    end = e.end();
  }
  ASSERT_EQ(end, qHeads);
}

TEST(SplitHeads, EachRankHoldsTheKvHeadsThatItsQueryHeadsRead) {
  for (int64_t kvHeads = 1; kvHeads <= 17; ++kvHeads)
    for (int64_t group = 1; group <= 9; ++group)
      for (int64_t parts = 1; parts <= kvHeads * group; ++parts)
        checkHeads(kvHeads, group, parts);
}

TEST(SplitHeads, WorkedExamples) {
  auto eight = splitHeads(32, 8, 3); // 8 KV heads over 3 ranks: 3/3/2
  EXPECT_EQ(eight[0].kv, (Extent{0, 3}));
  EXPECT_EQ(eight[2].kv, (Extent{6, 2}));
  EXPECT_EQ(eight[2].q, (Extent{24, 8}));
  auto fewer = splitHeads(9, 3, 4); // query heads 3/2/2/2, KV heads 0 | 1 | 1-2 | 2: 1 and 2 are held twice
  EXPECT_EQ(fewer[0].kv, (Extent{0, 1}));
  EXPECT_EQ(fewer[1].kv, (Extent{1, 1}));
  EXPECT_EQ(fewer[2].kv, (Extent{1, 2}));
  EXPECT_EQ(fewer[3].kv, (Extent{2, 1}));
}

TEST(LegalSplits, ListsTheLargestPpOfEachTp) {
  EXPECT_EQ(legalPairs({.qHeads = 3, .ffn = 100, .vocab = 100, .layers = 5, .devices = 12}),
            "tp 1 with pp 1-5, tp 2 with pp 1-5, tp 3 with pp 1-4");
  EXPECT_EQ(legalPairs({.qHeads = 8, .ffn = 2, .vocab = 100, .layers = 1, .devices = 12}),
            "tp 1 with pp 1, tp 2 with pp 1");
}

TEST(LegalSplits, NamesTheDimensionAndBothNumbers) {
  SplitLimits limits{.qHeads = 4, .ffn = 3, .vocab = 2, .layers = 2, .devices = 8};
  std::string legal = "; legal on these 8 devices: tp 1 with pp 1-2, tp 2 with pp 1-2";
  EXPECT_EQ(explainIllegalSplit(limits, 0, 1), "tp 0 and pp 1 must both be at least 1" + legal);
  EXPECT_EQ(explainIllegalSplit(limits, 1, -1), "tp 1 and pp -1 must both be at least 1" + legal);
  EXPECT_EQ(explainIllegalSplit(limits, 5, 1),
            "4 query heads cannot be spread over 5 ranks (--tp 5)" + legal);
  EXPECT_EQ(explainIllegalSplit(limits, 4, 1),
            "3 feed-forward columns cannot be spread over 4 ranks (--tp 4)" + legal);
  EXPECT_EQ(explainIllegalSplit(limits, 3, 1),
            "a vocabulary of 2 cannot be spread over 3 ranks (--tp 3)" + legal);
  EXPECT_EQ(explainIllegalSplit(limits, 2, 3), "2 layers cannot be cut into 3 stages (--pp 3)" + legal);
  limits.devices = 3;
  EXPECT_EQ(explainIllegalSplit(limits, 2, 2), "tp 2 x pp 2 needs 4 devices, but the topology has 3; legal "
                                               "on these 3 devices: tp 1 with pp 1-2, tp 2 with pp 1");
}

// Whatever the list offers is legal, and whatever is legal is on the list.
TEST(LegalSplits, TheListAndTheAnswerAgree) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    auto draw = [&](uint64_t n) { return 1 + static_cast<int64_t>(random() % n); };
    SplitLimits limits{draw(12), draw(20), draw(20), draw(10), draw(16)};
    std::string list = ", " + legalPairs(limits) + ",";
    for (int64_t tp = 1; tp <= 20; ++tp) {
      int64_t most = 0;
      for (int64_t pp = 1; pp <= 20; ++pp) {
        bool legal = explainIllegalSplit(limits, tp, pp).empty();
        ASSERT_EQ(legal, tp <= limits.qHeads && tp <= limits.ffn && tp <= limits.vocab &&
                             pp <= limits.layers && tp * pp <= limits.devices);
        if (legal)
          most = pp;
      }
      std::string entry =
          ", tp " + std::to_string(tp) + " with pp " + (most > 1 ? "1-" : "") + std::to_string(most) + ",";
      ASSERT_EQ(list.find(entry) != std::string::npos, most > 0) << list << " and " << entry;
    }
  }
}

// Numbers as large as the command line takes do not overflow on the way to an answer.
TEST(LegalSplits, HugeNumbersAreRefused) {
  SplitLimits limits{.qHeads = 4, .ffn = 64, .vocab = 64, .layers = 2, .devices = 8};
  EXPECT_NE(explainIllegalSplit(limits, INT64_MAX, INT64_MAX), "");
  EXPECT_NE(explainIllegalSplit(limits, 1, INT64_MAX), "");
  EXPECT_NE(explainIllegalSplit(limits, INT64_MIN, 1), "");
}

} // namespace
