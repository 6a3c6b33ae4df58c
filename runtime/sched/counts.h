// What an engine counts of its requests and steps as they go. No locks: the engine counts under its own.
#pragma once

#include "runtime/sched/metrics.h"
#include "runtime/sched/request.h"

#include <chrono>
#include <cstdint>

namespace llmrt::sched {

class Counts {
public:
  using Time = std::chrono::steady_clock::time_point;

  // A step takes the request's first tokens.
  void starts(Request &request, Time now);
  // All of the prompt has been computed; counted once however often it is computed again.
  void prompt(Request &request) {
    if (request.prompt_counted)
      return;
    request.prompt_counted = true;
    prompt_tokens_ += request.prompt_len;
  }
  // A token was chosen for a request, be it one that ends it.
  void drawn() { ++generation_tokens_; }
  // The request got a token of its output.
  void token(Request &request, Time now);
  // The request is over.
  void ends(const Request &request, Time now);
  // A step of so many tokens has ended, and its results are counted.
  void step(Time started, uint32_t tokens, Time now);

  const EngineMetrics &metrics() const { return metrics_; }
  uint64_t prompt_tokens() const { return prompt_tokens_; }
  uint64_t generation_tokens() const { return generation_tokens_; }
  uint64_t steps() const { return steps_; }

private:
  void observe_gaps();

  EngineMetrics metrics_;
  uint64_t prompt_tokens_ = 0, generation_tokens_ = 0, steps_ = 0;
  double gap_ = 0; // between tokens, and how often, not in metrics_ yet: most requests had their last tokens at one time
  uint64_t gaps_ = 0;
  Time last_step_; // its end
};

} // namespace llmrt::sched
