// The tiles into which gated_linear() cuts a product; the bench walks through them, choose_gated_shape()
// keeps what it found.
#pragma once

#include "kernels/cuda/linear.h"

#include <vector>

namespace llmrt::cuda {

struct GatedShape {
  int rows;    // of the input, of a tile: 128, 192 or 256
  int columns; // of the output, of a tile
  int cluster; // blocks that share the input's rows: 1 or 2
  int stages;  // 64 k each, that are in flight at most
  int band;    // tiles of rows that are multiplied side by side, where there are several
};
const std::vector<GatedShape> &gated_shapes();
GatedShape choose_gated_shape(int64_t M, int64_t columns);
void gated_linear(const Linear &p, Activation kind, const GatedShape &shape, cudaStream_t stream);

} // namespace llmrt::cuda
