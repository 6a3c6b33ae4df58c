// Logits whose columns several ranks compute and gather as the last thing they do: a backend that finds tokens without gathering
// reads here which columns are whose.
#pragma once

#include "runtime/plan/loaded_plan.h"

#include <cstdint>
#include <optional>

namespace llmrt::exec {

// Which token's logit the first column is that `rank` brings to the gather at the end of its program. None where it is no member
// of that gather, and none for any rank unless the programs of all members end with it: who leaves it out leaves out nothing
// else, and all ranks have the same answer, or they would wait for each other.
std::optional<uint64_t> first_own_logit(const plan::LoadedPlan &plan, uint32_t rank);

} // namespace llmrt::exec
