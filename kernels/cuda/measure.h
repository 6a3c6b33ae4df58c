// What `llmrt bench` measures a device with.
#pragma once

#include "kernels/cuda/dtype.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llmrt::cuda {

// Reads every byte (a multiple of 4096) and leaves a checksum of 4 bytes: what plain reads can reach.
void read_all(void *checksum, const void *data, int64_t bytes, cudaStream_t stream);
// n elements of random numbers in [-0.5, 0.5): zeros would flatter a product.
void fill_random(void *data, int64_t n, DType type, uint32_t seed, cudaStream_t stream);

} // namespace llmrt::cuda
