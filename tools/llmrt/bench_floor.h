// The least that a step must do, read off the plan: bytes to read and operations to carry out, over all ranks.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>

namespace llmrt::tool {

struct Floor {
  double weight_bytes = 0;        // of all products: read once a step, however many tokens it has
  double flops_per_token = 0;     // of products in front of the logits
  double flops_per_row = 0;       // of the product that makes logits
  double kv_bytes_per_token = 0;  // of context, read for each new token
  double attention_flops = 0;     // per new token and token of context
};

Floor floor_of(const plan::Plan &plan);

} // namespace llmrt::tool
