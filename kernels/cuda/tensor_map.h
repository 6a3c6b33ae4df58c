// Tensor maps: what the copy engine of Hopper and later GPUs is told of an array in device memory. Host code.
#pragma once

#include "kernels/cuda/dtype.h"

#include <cuda.h>

#include <cstdint>
#include <initializer_list>

namespace llmrt::cuda {

// A map of an array of two-byte elements with dims[0] contiguous, dims[i] apart by strides[i - 1] bytes (a multiple of 16), copied in
// boxes whose lines of 128 bytes are swizzled over eight lines, or boxes that are dense in shared memory. Elements beyond the array read as zeros. Throws
// std::runtime_error where the driver refuses it.
CUtensorMap tensor_map(DType type, const void *base, std::initializer_list<uint64_t> dims, std::initializer_list<uint64_t> strides,
                       std::initializer_list<uint32_t> box, bool swizzled = true);

} // namespace llmrt::cuda
