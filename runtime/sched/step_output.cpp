// Sampling and the rules for ending a request.
#include "runtime/sched/step_output.h"

#include "runtime/support/error.h"

#include <algorithm>

namespace llmrt::sched {

StepOutput read_logits(const StepWork &work, const exec::LogitsView &logits, sample::Scratch &scratch) {
  StepOutput out;
  Request &r = *work.request;
  const size_t rows = work.prompt_rows + (work.samples ? 1 : 0);
  if (rows == 0 || r.cancelled.load(std::memory_order_relaxed))
    return out;
  try {
    if (work.first_logits_row + rows > logits.rows) {
      out.error = "the executor returned " + std::to_string(logits.rows) + " rows of logits where at least " +
                  std::to_string(work.first_logits_row + rows) + " were asked for; this is a bug in llmrt";
      return out;
    }
    if (work.drawn) {
      const int32_t id = logits.tokens[work.first_logits_row + work.prompt_rows];
      if (id < 0)
        throw Error("the model produced logits that are not numbers (NaN); its weights are damaged or its activations "
                    "overflowed, try --dtype float32 or bfloat16");
      out.token = TokenOutput{id, std::nullopt};
      return out;
    }
    auto row = [&](size_t i) {
      return std::span<const float>(logits.data + (work.first_logits_row + i) * logits.vocab, logits.vocab);
    };
    for (uint32_t i = 0; i < work.prompt_rows; ++i) {
      const uint32_t scored = work.prompt_row_pos + i + 1;
      r.prompt_logprobs[scored] =
          sample::token_logprobs(row(i), r.tokens[scored], r.sampling.prompt_logprobs, scratch);
    }
    if (work.samples) {
      const auto last = row(work.prompt_rows);
      if (r.on_logits)
        r.on_logits(last.data(), last.size());
      TokenOutput token;
      token.id = r.sampler.sample(last, scratch);
      if (r.sampling.logprobs >= 0)
        token.logprobs = sample::token_logprobs(last, token.id, r.sampling.logprobs, scratch);
      out.token = std::move(token);
    }
  } catch (const std::exception &e) {
    const size_t position = work.samples ? r.tokens.size() - 1 : work.start + work.count - 1;
    out.error = "at position " + std::to_string(position) + ": " + e.what();
  }
  return out;
}

bool take_drawn(const StepWork &work, const exec::LogitsView &logits, int32_t &token) {
  Request &r = *work.request;
  if (!work.drawn || work.first_logits_row >= logits.rows || r.cancelled.load(std::memory_order_relaxed) ||
      r.output_tokens() + 1 >= r.max_tokens)
    return false;
  token = logits.tokens[work.first_logits_row];
  if (token < 0 || r.ends_at(token))
    return false;
  r.tokens.push_back(token); // and nothing to the sampler, which is not asked for tokens of a request that the executor draws for
  return true;
}

std::optional<RequestEvent> take_output(const StepWork &work, StepOutput &&output) {
  Request &r = *work.request;
  RequestEvent event;
  event.cached_tokens = r.cached;
  if (r.cancelled.load(std::memory_order_relaxed)) {
    event.finish = FinishReason::Cancelled;
    return event;
  }
  if (!output.error.empty()) {
    event.finish = FinishReason::Error;
    event.error = std::move(output.error);
    return event;
  }
  if (!work.completes)
    return std::nullopt;
  event.prompt_logprobs = std::move(r.prompt_logprobs); // empty from the second time on
  r.prompt_logprobs.clear();
  if (!output.token) { // max_tokens 0: only the prompt was wanted
    event.finish = FinishReason::Length;
    return event;
  }
  const int32_t id = output.token->id;
  if (r.ends_at(id)) {
    event.finish = FinishReason::Stop;
    event.stop_token = id;
    return event;
  }
  r.sampler.accept(id);
  r.tokens.push_back(id);
  event.tokens.push_back(std::move(*output.token));
  if (r.output_tokens() >= r.max_tokens)
    event.finish = FinishReason::Length;
  return event;
}

} // namespace llmrt::sched
