// What a finished step means for its requests: tokens are chosen and prompts scored from the logits. What the host reads of
// them needs no lock of the engine's, since such requests belong to their step while it is in flight.
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

// The usual case, at little cost: takes a token that the executor drew and that ends nothing into the request, which is not over.
// False, and nothing is done: it is for the two above.
bool take_drawn(const StepWork &work, const exec::LogitsView &logits, int32_t &token);

// Takes the token into the request. Returns the event to send; its `finish` is set when the request is over.
// Throws nothing; allocates only what the event carries.
std::optional<RequestEvent> take_output(const StepWork &work, StepOutput &&output);

} // namespace llmrt::sched
