// Rows in the memory of some device: what collectives move.
#pragma once

#include "kernels/cuda/dtype.h"

#include <cstddef>
#include <cstdint>

namespace llmrt::exec::cuda {

// [rows, cols] elements, row stride ld (elements).
struct DevicePart {
  std::byte *data = nullptr;
  int64_t ld = 0, rows = 0, cols = 0;
  llmrt::cuda::DType type = llmrt::cuda::DType::f32;

  int64_t size() const { return static_cast<int64_t>(llmrt::cuda::dtype_bytes(type)); }
  bool dense() const { return ld == cols; }
};

} // namespace llmrt::exec::cuda
