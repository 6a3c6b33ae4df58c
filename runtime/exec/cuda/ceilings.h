// Measures what a GPU can do at most: plain reads, cuBLASLt's large product, and copies from the host.
#pragma once

#include "kernels/cuda/dtype.h"
#include "runtime/exec/executor.h"

namespace llmrt::exec::cuda {

// Of the current device; needs about 700 MB of free memory. `data` [bytes] is read (and not changed) where it is larger
// than the caches.
Ceilings measure_device(llmrt::cuda::DType weight_type, const std::byte *data, size_t bytes);

} // namespace llmrt::exec::cuda
