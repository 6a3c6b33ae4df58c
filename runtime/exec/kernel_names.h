// The kernel variants that the CPU backend has, by the names that plans call them. The compiler's kernel selection may
// write only these; docs list them from here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/plan_generated.h"

namespace llmrt::exec {

// The names known for an op, e.g. "cpu.linear.packed16" for linear.
std::vector<std::string_view> kernels_of(plan::OpKind op);

// Whether `kernel` is a GPU's for this op: "cuda.linear", or a variant of it, "cuda.linear.skinny". The CPU runs its own
// kernel of the op in its place; which variant a GPU would choose is nothing to it.
bool is_for_gpu(plan::OpKind op, std::string_view kernel);

// Throws llmrt::Error naming `where`, the unknown kernel, and those known, unless `kernel` is one of kernels_of(op) or
// is_for_gpu().
void check_kernel(const std::string &where, plan::OpKind op, std::string_view kernel);

} // namespace llmrt::exec
