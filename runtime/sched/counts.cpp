#include "runtime/sched/counts.h"

#include "runtime/support/seconds.h"

#include <algorithm>
#include <utility>

namespace llmrt::sched {

void Counts::starts(Request &request, Time now) {
  if (request.was_started)
    return;
  request.was_started = true;
  request.started = now;
  metrics_.queue.observe(seconds_between(request.arrived, now));
}

void Counts::token(Request &request, Time now) {
  if (request.last_token == Time()) {
    request.first_token = now;
    metrics_.first_token.observe(seconds_between(request.arrived, now));
    metrics_.prefill.observe(seconds_between(request.started, now));
  } else {
    const double gap = seconds_between(request.last_token, now);
    if (gap != gap_) {
      observe_gaps();
      gap_ = gap;
    }
    ++gaps_;
  }
  request.last_token = now;
}

void Counts::ends(const Request &request, Time now) {
  metrics_.request.observe(seconds_between(request.arrived, now));
  if (request.first_token != Time())
    metrics_.decode.observe(seconds_between(request.first_token, request.last_token));
  metrics_.prompt_tokens.observe(request.prompt_len);
  metrics_.generation_tokens.observe(request.output_tokens());
}

void Counts::step(Time started, uint32_t tokens, Time now) {
  observe_gaps();
  metrics_.step.observe(seconds_between(std::max(started, last_step_), now));
  metrics_.step_tokens.observe(tokens);
  last_step_ = now;
  ++steps_;
}

void Counts::observe_gaps() {
  if (const uint64_t count = std::exchange(gaps_, 0))
    metrics_.inter_token.observe(gap_, count);
}

} // namespace llmrt::sched
