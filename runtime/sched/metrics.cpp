#include "runtime/sched/metrics.h"

#include <algorithm>
#include <numeric>

namespace llmrt {

namespace {

constexpr double kRequestSeconds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000};
constexpr double kTokenSeconds[] = {0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03,
                                    0.04,   0.05,  0.075,  0.1,   0.15,  0.2,   0.3,   0.5,    0.75, 1,     2.5,  5, 10};
constexpr double kTokenCounts[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};

} // namespace

std::span<const double> request_seconds() { return kRequestSeconds; }
std::span<const double> token_seconds() { return kTokenSeconds; }
std::span<const double> token_counts() { return kTokenCounts; }

void Histogram::observe(double value, uint64_t times) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<size_t>(bucket)] += times;
  sum_ += value * static_cast<double>(times);
}

uint64_t Histogram::total() const { return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0}); }

} // namespace llmrt
