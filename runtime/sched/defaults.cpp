// See defaults.h.
#include "runtime/sched/defaults.h"

namespace llmrt {

SamplingParams default_sampling(const plan::Plan &plan) {
  SamplingParams params;
  const plan::Text *text = plan.text();
  if (!text)
    return params;
  params.temperature = text->temperature().value_or(params.temperature);
  params.top_p = text->top_p().value_or(params.top_p);
  params.min_p = text->min_p().value_or(params.min_p);
  params.top_k = text->top_k().value_or(params.top_k);
  params.repetition_penalty = text->repetition_penalty().value_or(params.repetition_penalty);
  return params;
}

} // namespace llmrt
