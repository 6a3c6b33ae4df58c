// Dequantisation of GGUF tensor rows to f32, for every type that the importer accepts.
// Block formats: the ggml specification (GGUF, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace llmrt::cpu {

// Numbered as in the GGUF file format.
enum class GgmlType : uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  BF16 = 30
};

struct GgmlBlock {
  int64_t elements; // in one block; a row holds whole blocks
  int64_t bytes;
};

// {0, 0} for a type that this file does not know.
GgmlBlock ggml_block(GgmlType type);
const char *ggml_type_name(GgmlType type);

// Bytes of n elements (a multiple of the block's elements).
size_t ggml_row_bytes(GgmlType type, int64_t n);

// out[i] = value of element i, for n elements, a multiple of ggml_block(type).elements.
// `in` needs no alignment. Throws std::invalid_argument for an unknown type or an uneven n.
void dequantize(float *out, const void *in, GgmlType type, int64_t n);

} // namespace llmrt::cpu
