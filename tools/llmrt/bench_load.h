// The requests of `llmrt bench`: random prompts of one length, each answered greedily to its full length, in bursts, in a closed loop
// or in an open one; and when their tokens came.
#pragma once

#include "runtime/sched/engine.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace llmrt::tool {

// One request's times.
struct Track {
  using Clock = std::chrono::steady_clock;
  Clock::time_point submitted, last; // last: the end of the answer
  std::vector<Clock::time_point> tokens;
  std::string error; // for the loops below: why it failed
};

// Submits requests to an engine, which it must not outlive, and fills their tracks. A request that is refused or fails throws
// llmrt::Error, once nothing runs any more that would write to a track.
class BenchLoad {
public:
  BenchLoad(Engine &engine, uint32_t vocab) : engine_(engine), vocab_(static_cast<int32_t>(vocab)) {}

  // All at once, until all are answered.
  void burst(std::vector<Track> &tracks, int input, int output);
  // At most `concurrency` at a time, a new one whenever one ends. Both loops return the seconds from first to last.
  double closed_loop(std::vector<Track> &tracks, int concurrency, int input, int output);
  // A Poisson stream of `rate` requests a second, whatever becomes of those before.
  double open_loop(std::vector<Track> &tracks, double rate, int input, int output);

private:
  void submit(int input, int output, Track &track);
  void wait(int most); // until at most that many run
  void finish(const std::vector<Track> &tracks);

  Engine &engine_;
  int32_t vocab_;
  std::mt19937 random_{1}, arrivals_{2};
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
};

} // namespace llmrt::tool
