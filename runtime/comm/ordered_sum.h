// Elementwise sums of several matrices in a fixed order of addition, written back to all of them.
#pragma once

#include <cstddef>
#include <span>

namespace llmrt::comm {

struct SumOperand {
  float *data = nullptr; // [rows, cols]
  size_t stride = 0;     // floats from row to row
};

// For each element of rows [row_begin, row_end) × columns [col_begin, col_end): s = ((m0 + m1) + m2) + …, stored
// to every operand. No element's result depends on another element, nor on how the work is cut.
void ordered_sum(std::span<const SumOperand> operands, size_t row_begin, size_t row_end, size_t col_begin,
                 size_t col_end);

} // namespace llmrt::comm
