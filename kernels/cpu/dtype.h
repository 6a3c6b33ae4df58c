// Element types that the CPU kernels store weights and KV pages in, and their sizes.
// Activations are always f32; conversions are in convert.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llmrt::cpu {

enum class DType : uint8_t { f32 = 0, bf16 = 1, f16 = 2 };

constexpr size_t dtype_bytes(DType t) { return t == DType::f32 ? 4 : 2; }

} // namespace llmrt::cpu
