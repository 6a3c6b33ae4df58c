// The sampling parameters of a request that names none: generation_config.json's, as the plan carries them.
#pragma once

#include "runtime/plan/loaded_plan.h"
#include "runtime/sample/params.h"

namespace llmrt {

// Where the plan says nothing: temperature 1, no filter, no penalty.
SamplingParams default_sampling(const plan::Plan &plan);

} // namespace llmrt
