// Element types that the CPU kernels store weights and KV pages in, and their sizes.
// Activations are always f32; conversions are in convert.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llmrt::cpu {

// q8_0 and q4_1 are for packed linear weights only (linear.h): blocks of 32 columns with a scale, and for
// q4_1 an offset, each.
enum class DType : uint8_t { f32 = 0, bf16 = 1, f16 = 2, q8_0 = 3, q4_1 = 4 };

constexpr bool is_quantized(DType t) {
  return t == DType::q8_0 || t == DType::q4_1;
}

// Of one element; not for quantised types.
constexpr size_t dtype_bytes(DType t) {
  return t == DType::f32 ? 4 : 2;
}

} // namespace llmrt::cpu
