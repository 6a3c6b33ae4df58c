// The kernel variants that this runtime has, by the names that plans call them. The compiler's kernel selection may
// write only these; docs list them from here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/plan_generated.h"

namespace llmrt::exec {

// The names known for an op, e.g. "cpu.linear.packed16" for linear.
std::vector<std::string_view> kernels_of(plan::OpKind op);

// Throws llmrt::Error naming `where`, the unknown kernel, and those known, unless `kernel` is one of kernels_of(op).
void check_kernel(const std::string &where, plan::OpKind op, std::string_view kernel);

} // namespace llmrt::exec
