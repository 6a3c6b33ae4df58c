// Stage cuts against all cuts there are: the chosen one is within 0.1% of the fastest slowest stage and,
// among those, has the most room for KV; weights that do not fit lose to all that fit.
#include "passes/analysis/StageCuts.h"

#include "llvm/ADT/ArrayRef.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

using namespace llmc;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Value {
  double seconds = 0, kvTokens = kInfinity;
};

// What a cut is worth, summed rank by rank straight from the problem.
Value worth(const StageCutProblem &p, const llvm::SmallVector<int64_t> &firstLayer) {
  Value v;
  for (int64_t s = 0; s < p.stages; ++s) {
    int64_t end = s + 1 < p.stages ? firstLayer[s + 1] : static_cast<int64_t>(p.layers.size());
    for (int64_t t = 0; t < p.tp; ++t) {
      uint64_t bytes = 0, kv = 0;
      for (int64_t i = firstLayer[s]; i < end; ++i)
        bytes += p.layers[i].weightBytes[t], kv += p.layers[i].kvBytes[t];
      if (s == 0)
        bytes += p.head.weightBytes[t];
      if (s == p.stages - 1 && !(p.tied && p.stages == 1))
        bytes += p.tail.weightBytes[t];
      double free = static_cast<double>(p.devices[s][t].budgetBytes) - static_cast<double>(bytes);
      v.seconds = std::max(v.seconds, static_cast<double>(bytes) / p.devices[s][t].bandwidth);
      v.kvTokens =
          std::min(v.kvTokens, free < 0 ? free : free / std::max<double>(static_cast<double>(kv), 1.0));
    }
  }
  return v;
}

void forAllCuts(int64_t layers, int64_t stages,
                const std::function<void(const llvm::SmallVector<int64_t> &)> &visit) {
  llvm::SmallVector<int64_t> first{0};
  std::function<void()> extend = [&] {
    int64_t s = static_cast<int64_t>(first.size());
    if (s == stages)
      return visit(first);
    for (int64_t b = first.back() + 1; b <= layers - (stages - s); ++b) {
      first.push_back(b);
      extend();
      first.pop_back();
    }
  };
  extend();
}

// The best by brute force: smallest slowest stage, then the largest capacity within `slack` of it.
Value bruteForce(const StageCutProblem &p, double slack) {
  int64_t layers = static_cast<int64_t>(p.layers.size());
  for (bool mustFit : {true, false}) {
    double fastest = kInfinity;
    forAllCuts(layers, p.stages, [&](auto &cut) {
      Value v = worth(p, cut);
      if (!mustFit || v.kvTokens >= 0)
        fastest = std::min(fastest, v.seconds);
    });
    if (fastest == kInfinity)
      continue;
    Value best{fastest, -kInfinity};
    forAllCuts(layers, p.stages, [&](auto &cut) {
      Value v = worth(p, cut);
      if (v.seconds <= fastest * slack && (!mustFit || v.kvTokens >= 0))
        best.kvTokens = std::max(best.kvTokens, v.kvTokens);
    });
    return best;
  }
  return {};
}

StageCutProblem randomProblem(std::mt19937_64 &random) {
  auto draw = [&](uint64_t low, uint64_t high) { return low + random() % (high - low + 1); };
  StageCutProblem p;
  p.tp = static_cast<int64_t>(draw(1, 3));
  int64_t layers = static_cast<int64_t>(draw(1, 9));
  p.stages = static_cast<int64_t>(draw(1, std::min<int64_t>(layers, 4)));
  bool alike = random() % 2; // as in real models, where many cuts tie
  auto cost = [&](uint64_t low, uint64_t high) {
    LayerCost c;
    for (int64_t t = 0; t < p.tp; ++t) {
      c.weightBytes.push_back(alike ? high : draw(low, high));
      c.kvBytes.push_back(alike ? 16 : draw(0, 32));
    }
    return c;
  };
  for (int64_t i = 0; i < layers; ++i)
    p.layers.push_back(cost(100, 1000));
  p.head = cost(0, 2000);
  p.tail = cost(0, 2000);
  p.tied = random() % 2;
  uint64_t scarce = draw(1, 4);
  for (int64_t s = 0; s < p.stages; ++s) {
    auto &row = p.devices.emplace_back();
    for (int64_t t = 0; t < p.tp; ++t)
      row.push_back({static_cast<double>(draw(1, 4)) * 1000.0, draw(500, 3000 * scarce)});
  }
  return p;
}

TEST(StageCuts, NoCutIsBetter) {
  std::mt19937_64 random(4);
  int unfit = 0;
  for (int round = 0; round < 4000; ++round) {
    StageCutProblem p = randomProblem(random);
    SCOPED_TRACE("round " + std::to_string(round));
    StageCuts cuts = cutStages(p);
    ASSERT_EQ(static_cast<int64_t>(cuts.firstLayer.size()), p.stages);
    ASSERT_EQ(cuts.firstLayer[0], 0);
    for (int64_t s = 1; s < p.stages; ++s)
      ASSERT_GT(cuts.firstLayer[s], cuts.firstLayer[s - 1]);
    ASSERT_LT(cuts.firstLayer.back(), static_cast<int64_t>(p.layers.size()));

    Value mine = worth(p, cuts.firstLayer);
    EXPECT_DOUBLE_EQ(cuts.slowestSeconds, mine.seconds);
    EXPECT_DOUBLE_EQ(cuts.kvTokens, mine.kvTokens);
    Value best = bruteForce(p, 1.001);
    ASSERT_LE(mine.seconds, best.seconds * 1.001);
    ASSERT_DOUBLE_EQ(mine.kvTokens, best.kvTokens);
    unfit += mine.kvTokens < 0;
  }
  EXPECT_GT(unfit, 100); // the problems reach both ends
  EXPECT_LT(unfit, 3900);
}

// Layers of equal cost for `stages` devices of the given bandwidths.
StageCutProblem even(int64_t layers, llvm::ArrayRef<double> bandwidths, uint64_t head, uint64_t tail) {
  StageCutProblem p;
  p.stages = static_cast<int64_t>(bandwidths.size());
  for (int64_t i = 0; i < layers; ++i)
    p.layers.push_back({{100}, {1}});
  p.head = {{head}, {0}};
  p.tail = {{tail}, {0}};
  for (double bandwidth : bandwidths)
    p.devices.push_back({{bandwidth, 1000000}});
  return p;
}

TEST(StageCuts, EqualDevicesGetEqualShares) {
  EXPECT_EQ(cutStages(even(12, {1, 1, 1}, 0, 0)).firstLayer, (llvm::SmallVector<int64_t>{0, 4, 8}));
}

TEST(StageCuts, LmHeadCountsAgainstTheLastStage) {
  EXPECT_EQ(cutStages(even(12, {1, 1}, 0, 400)).firstLayer, (llvm::SmallVector<int64_t>{0, 8}));
  EXPECT_EQ(cutStages(even(12, {1, 1}, 400, 0)).firstLayer, (llvm::SmallVector<int64_t>{0, 4}));
}

TEST(StageCuts, AFastDeviceGetsMoreLayers) {
  EXPECT_EQ(cutStages(even(12, {2, 1}, 0, 0)).firstLayer, (llvm::SmallVector<int64_t>{0, 8}));
}

TEST(StageCuts, OneStageHoldsATiedTableOnce) {
  StageCutProblem p = even(2, {1}, 400, 400);
  EXPECT_DOUBLE_EQ(cutStages(p).slowestSeconds, 1000);
  p.tied = true;
  EXPECT_DOUBLE_EQ(cutStages(p).slowestSeconds, 600);
}

TEST(StageCuts, MemoryComesBeforeSpeed) {
  StageCutProblem p = even(12, {1, 1}, 0, 0);
  p.devices[0][0].budgetBytes = 350; // three layers and a half
  EXPECT_EQ(cutStages(p).firstLayer, (llvm::SmallVector<int64_t>{0, 3}));
}

TEST(StageCuts, WhatFitsNowhereIsStillCut) {
  StageCutProblem p = even(4, {1, 1}, 0, 0);
  p.devices[0][0].budgetBytes = p.devices[1][0].budgetBytes = 50;
  StageCuts cuts = cutStages(p);
  EXPECT_EQ(cuts.firstLayer, (llvm::SmallVector<int64_t>{0, 2}));
  EXPECT_DOUBLE_EQ(cuts.kvTokens, -150);
}

} // namespace
