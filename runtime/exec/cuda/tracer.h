// Times of kernels and copies from CUPTI, whose library is opened when a profile is wanted and not before.
#pragma once

#include "runtime/exec/kernel_tracer.h"

#include <memory>
#include <vector>

namespace llmrt::exec::cuda {

// Starts to record. Throws llmrt::Error where CUPTI is not installed (with the package's name), does not start, or records
// already.
std::unique_ptr<KernelTracer> open_tracer(const std::vector<int> &devices);

} // namespace llmrt::exec::cuda
