// The rotation of a position and a frequency, for the kernels that apply rotary embeddings.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace llmrt::cuda {

// Cosine and sine of position * frequency, times `factor`. The product is exact in double; reduced to one turn it keeps float's
// full precision at any position.
__device__ __forceinline__ void rotation(int32_t position, float frequency, float factor, float &cosine, float &sine) {
  const double angle = static_cast<double>(position) * static_cast<double>(frequency);
  const float reduced = static_cast<float>(angle - rint(angle * 0.15915494309189535) * 6.283185307179586);
  sincosf(reduced, &sine, &cosine);
  sine *= factor, cosine *= factor;
}

} // namespace llmrt::cuda
