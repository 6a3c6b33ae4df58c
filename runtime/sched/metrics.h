// How long requests and steps take, counted in histograms as monitoring systems read them. No locks: the engine counts under
// its own and hands out copies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace llmrt {

class Histogram {
public:
  // Ascending upper bounds (inclusive), of static storage; one more bucket takes what is above the last.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double value, uint64_t times = 1);

  std::span<const double> bounds() const { return bounds_; }
  const std::vector<uint64_t> &counts() const { return counts_; } // [bounds + 1], not cumulative
  double sum() const { return sum_; }
  uint64_t total() const;

private:
  std::span<const double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

// Bounds: of waits of requests and of gaps between tokens, in seconds, and of counts of tokens.
std::span<const double> request_seconds();
std::span<const double> token_seconds();
std::span<const double> token_counts();

struct EngineMetrics {
  // Of requests, in seconds.
  Histogram queue{request_seconds()};       // from submission to the first step
  Histogram prefill{request_seconds()};     // from there to the first token
  Histogram first_token{request_seconds()}; // from submission to the first token
  Histogram decode{request_seconds()};      // from the first token to the last
  Histogram request{request_seconds()};     // from submission to the end, however it ends
  Histogram inter_token{token_seconds()};   // between tokens of a request
  // Of requests, in tokens; counted at the end.
  Histogram prompt_tokens{token_counts()}, generation_tokens{token_counts()};
  // Of steps. With several under way, from the end of the one before where that is later than the own start.
  Histogram step{token_seconds()};
  Histogram step_tokens{token_counts()};
};

} // namespace llmrt
