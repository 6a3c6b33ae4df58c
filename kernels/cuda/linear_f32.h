// Products of f32 by f32: what skinny_linear() calls for them.
#pragma once

#include "kernels/cuda/linear.h"

namespace llmrt::cuda {

// Whether all types are f32 and rows can be read 16 bytes at a time.
bool f32_linear_applies(const Linear &p);
// Any M. An element's sum takes the same order whatever M is.
void f32_linear(const Linear &p, cudaStream_t stream);

} // namespace llmrt::cuda
