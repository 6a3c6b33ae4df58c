// What a finished step means for its requests: tokens are chosen and prompts scored from the logits. Runs on
// the executor's output thread without the engine's lock, since the requests of a step belong to it while it
// is in flight.
#pragma once

#include "runtime/sample/select.h"
#include "runtime/sched/scheduler.h"

#include <optional>
#include <string>

namespace llmrt::sched {

struct StepOutput {
  std::optional<TokenOutput> token; // chosen, not yet taken into the request
  std::string error;                // the request cannot go on
};

// Reads the rows of `work` out of `logits`, and keeps prompt log-probabilities in the request. Never throws.
StepOutput read_logits(const StepWork &work, const exec::LogitsView &logits, sample::Scratch &scratch);

// Takes the token into the request. Returns the event to send; its `finish` is set when the request is over.
// Throws nothing; allocates only what the event carries.
std::optional<RequestEvent> take_output(const StepWork &work, StepOutput &&output);

} // namespace llmrt::sched
