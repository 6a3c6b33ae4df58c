// Reads boxes of checkpoint tensors: as f32 rows, from their file, block types dequantised, or from their fill; or as they are.
// Scratch is bounded: a few megabytes, or one row's slice where that is larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/cpu/dequant.h"
#include "runtime/exec/weight_files.h"

namespace llmrt::exec {

// Checks once per tensor what reading relies on: its bytes match its shape and lie inside its file.
// Throws llmrt::Error naming the tensor and both numbers.
void check_tensor(const plan::LoadedPlan &plan, const plan::Tensor &tensor);

// The kernels' name for a type in files. Throws llmrt::Error for one that is unknown.
cpu::GgmlType file_type(plan::DType dtype);

// One per thread.
class TensorReader {
public:
  explicit TensorReader(const WeightFiles &files) : files_(files) {}

  // out[i * out_stride + j] = tensor[row + i, col + j], for i < rows, j < cols; out_stride in floats.
  void read(const plan::Tensor &tensor, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols, float *out,
            size_t out_stride);

  // The same without a conversion: bytes at out + i * out_stride; out_stride in bytes. The tensor must have a file and a type
  // of one element a block. Rows that stand in the file as they shall in memory are read straight there.
  void copy(const plan::Tensor &tensor, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols, std::byte *out,
            size_t out_stride);

  // The whole blocks that hold columns [col, col + cols) of `rows` rows, as they stand in the file: `use` is called for runs
  // of rows, counted from `row` on, with their bytes and the distance between two rows. The tensor must have a file.
  using UseBlocks = std::function<void(uint64_t first, uint64_t count, const std::byte *blocks, size_t row_bytes)>;
  void read_blocks(const plan::Tensor &tensor, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols,
                   const UseBlocks &use);

private:
  void read_file(const plan::Tensor &tensor, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols, float *out,
                 size_t out_stride);

  const WeightFiles &files_;
  std::vector<std::byte> raw_;
  std::vector<float> row_;
};

} // namespace llmrt::exec
