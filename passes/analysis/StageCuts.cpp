#include "passes/analysis/StageCuts.h"

#include <algorithm>
#include <limits>

using namespace llmc;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct StageValue {
  double seconds = 0, kvTokens = 0;
};

class Solver {
public:
  explicit Solver(const StageCutProblem &problem) : p(problem), n(problem.layers.size()) {
    weightSums.assign(p.tp, llvm::SmallVector<uint64_t>(n + 1, 0));
    kvSums.assign(p.tp, llvm::SmallVector<uint64_t>(n + 1, 0));
    for (int64_t t = 0; t < p.tp; ++t)
      for (int64_t i = 0; i < n; ++i) {
        weightSums[t][i + 1] = weightSums[t][i] + p.layers[i].weightBytes[t];
        kvSums[t][i + 1] = kvSums[t][i] + p.layers[i].kvBytes[t];
      }
  }

  StageCuts solve() {
    // First the fastest slowest stage among cuts that fit; where none fits, among all.
    for (bool mustFit : {true, false}) {
      double slowest = minimiseSlowest(mustFit);
      if (slowest < kInfinity)
        return maximiseCapacity(slowest * 1.001, mustFit);
    }
    return {};
  }

private:
  const StageCutProblem &p;
  int64_t n;
  llvm::SmallVector<llvm::SmallVector<uint64_t>> weightSums, kvSums; // prefix sums over layers, [tp][n+1]

  // Stage s over layers [a, b).
  StageValue value(int64_t s, int64_t a, int64_t b) const {
    StageValue v{0, kInfinity};
    for (int64_t t = 0; t < p.tp; ++t) {
      uint64_t bytes = weightSums[t][b] - weightSums[t][a];
      if (s == 0)
        bytes += p.head.weightBytes[t];
      if (s == p.stages - 1 && !(p.tied && p.stages == 1))
        bytes += p.tail.weightBytes[t];
      const RankDevice &device = p.devices[s][t];
      v.seconds = std::max(v.seconds, bytes / device.bandwidth);
      double free = static_cast<double>(device.budgetBytes) - static_cast<double>(bytes);
      double perToken = static_cast<double>(kvSums[t][b] - kvSums[t][a]);
      v.kvTokens = std::min(v.kvTokens, free < 0 ? free : free / std::max(perToken, 1.0));
    }
    return v;
  }

  double minimiseSlowest(bool mustFit) const {
    llvm::SmallVector<double> best(n + 1, kInfinity); // best[b]: stages so far cover layers [0, b)
    best[0] = 0;
    for (int64_t s = 0; s < p.stages; ++s) {
      llvm::SmallVector<double> next(n + 1, kInfinity);
      for (int64_t b = s + 1; b <= n - (p.stages - 1 - s); ++b)
        for (int64_t a = s; a < b; ++a) {
          if (best[a] == kInfinity)
            continue;
          StageValue v = value(s, a, b);
          if (!mustFit || v.kvTokens >= 0)
            next[b] = std::min(next[b], std::max(best[a], v.seconds));
        }
      best = next;
    }
    return best[n];
  }

  StageCuts maximiseCapacity(double limit, bool mustFit) const {
    llvm::SmallVector<double> best(n + 1, -kInfinity);
    best[0] = kInfinity;
    llvm::SmallVector<llvm::SmallVector<int64_t>> from(p.stages, llvm::SmallVector<int64_t>(n + 1, -1));
    for (int64_t s = 0; s < p.stages; ++s) {
      llvm::SmallVector<double> next(n + 1, -kInfinity);
      for (int64_t b = s + 1; b <= n - (p.stages - 1 - s); ++b)
        for (int64_t a = s; a < b; ++a) {
          if (best[a] == -kInfinity)
            continue;
          StageValue v = value(s, a, b);
          double capacity = std::min(best[a], v.kvTokens);
          if (v.seconds <= limit && (!mustFit || v.kvTokens >= 0) && (capacity > next[b] || from[s][b] < 0)) {
            next[b] = capacity;
            from[s][b] = a;
          }
        }
      best = next;
    }
    StageCuts cuts;
    cuts.firstLayer.assign(p.stages, 0);
    cuts.kvTokens = best[n];
    for (int64_t s = p.stages - 1, b = n; s >= 0; --s) {
      cuts.firstLayer[s] = from[s][b];
      cuts.slowestSeconds = std::max(cuts.slowestSeconds, value(s, from[s][b], b).seconds);
      b = from[s][b];
    }
    return cuts;
  }
};
} // namespace

StageCuts llmc::cutStages(const StageCutProblem &problem) { return Solver(problem).solve(); }
