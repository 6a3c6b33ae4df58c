// How wide_linear() cuts a product up; the bench walks through them, choose_wide_shape() keeps what it found.
#pragma once

#include "kernels/cuda/linear.h"

#include <vector>

namespace llmrt::cuda {

struct WideShape {
  int columns; // weight rows of a tile; of a gated product, half of them gates
  int splits;  // blocks of a cluster that share a tile, along k: 1, 2, 4 or 8; more than one only where every tile has its cluster at once
};
// Those that wide_linear() has for a weight [N, K].
std::vector<WideShape> wide_shapes(int64_t N, int64_t K, bool gated);
// On devices of one model whose multiprocessors are grouped differently, it may differ, and so may the last bits of sums.
WideShape choose_wide_shape(int64_t M, int64_t N, int64_t K, bool gated);
void wide_linear(const Linear &p, std::optional<Activation> gate, const WideShape &shape, cudaStream_t stream);

} // namespace llmrt::cuda
