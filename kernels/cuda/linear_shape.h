// How skinny_linear() cuts a product up; the bench walks through them, choose_linear_shape() keeps what it found.
#pragma once

#include "kernels/cuda/linear.h"

namespace llmrt::cuda {

struct LinearShape {
  int row_tiles; // weight rows of a block / 16: 1, 2 or 4
  int warps;     // of a block, along K: up to 8
  int stages;    // lines in flight a row and warp: 3 or 4
  int splits;    // blocks of a cluster, along K: 1 on devices without clusters, else 1 to 8
};
// M up to 32.
LinearShape choose_linear_shape(int64_t M, int64_t N, int64_t K);
void skinny_linear(const Linear &p, const LinearShape &shape, cudaStream_t stream);

} // namespace llmrt::cuda
