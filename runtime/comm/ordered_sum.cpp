// The inner loop of the host all-reduce: strips that stay in the first-level cache, plain additions that the
// compiler vectorises (an elementwise sum has the same bits at any vector width).
#include "runtime/comm/ordered_sum.h"

#include <algorithm>
#include <cstring>

namespace llmrt::comm {

namespace {
constexpr size_t kStrip = 512;

void add(float *__restrict sum, const float *__restrict term, size_t n) {
  for (size_t i = 0; i < n; ++i)
    sum[i] += term[i];
}
} // namespace

void ordered_sum(std::span<const SumOperand> operands, size_t row_begin, size_t row_end, size_t col_begin,
                 size_t col_end) {
  alignas(64) float strip[kStrip];
  for (size_t row = row_begin; row < row_end; ++row) {
    for (size_t col = col_begin; col < col_end; col += kStrip) {
      const size_t n = std::min(kStrip, col_end - col);
      std::memcpy(strip, operands[0].data + row * operands[0].stride + col, n * sizeof(float));
      for (size_t m = 1; m < operands.size(); ++m)
        add(strip, operands[m].data + row * operands[m].stride + col, n);
      for (const SumOperand &operand : operands)
        std::memcpy(operand.data + row * operand.stride + col, strip, n * sizeof(float));
    }
  }
}

} // namespace llmrt::comm
