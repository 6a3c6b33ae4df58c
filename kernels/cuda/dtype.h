// Element types of the CUDA kernels' operands.
#pragma once

#include <cstddef>

namespace llmrt::cuda {

enum class DType { f32, f16, bf16 };

constexpr size_t dtype_bytes(DType t) { return t == DType::f32 ? 4 : 2; }

} // namespace llmrt::cuda
