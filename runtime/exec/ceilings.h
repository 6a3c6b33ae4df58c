// Measures what the CPU can do at most: reads of memory, and the kernels' own large product.
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/plan/plan_generated.h"

namespace llmrt::exec {

// With every core that this process may use. About a second.
Ceilings measure_host(plan::DType weight_type);

} // namespace llmrt::exec
