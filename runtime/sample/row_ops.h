// Passes over a whole row of logits, the only part of sampling whose cost grows with the vocabulary. They use
// wide SIMD where the machine has it and give the same bits where it has not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llmrt::sample {

// Rows are summarised in blocks of this many logits; a filter then visits only blocks that can matter.
inline constexpr size_t kBlock = 64;
inline size_t num_blocks(size_t n) {
  return (n + kBlock - 1) / kBlock;
}

struct RowMax {
  float value; // the largest, NaN ignored; -inf for an empty row
  bool has_nan;
};

// block_max [num_blocks(n)] gets the largest value of each block.
RowMax row_max(const float *x, size_t n, float *block_max);

// Lowest index of x that equals `value`, the row's maximum.
size_t first_equal(const float *x, size_t n, float value, const float *block_max);

// out[i] = exp((x[i] - max) * inv_temperature), 0 below e^-87; block_sum [num_blocks(n)] gets the sum of each
// block. Returns the sum of all. x[i] <= max, max finite. `out` may be null: only the sums then. Relative
// error < 2e-7.
double row_exp(const float *x, size_t n, float max, float inv_temperature, float *out, double *block_sum);

// Sum of the weights >= threshold, of each block into block_sum and of all as the result.
double row_mass(const float *weights, size_t n, float threshold, double *block_sum);

// The function of row_exp() for one value.
float exp_one(float x, float max, float inv_temperature);

// Values greater than `value`, plus those equal to it at an index below `before`.
size_t count_better(const float *x, size_t n, float value, size_t before);

} // namespace llmrt::sample
