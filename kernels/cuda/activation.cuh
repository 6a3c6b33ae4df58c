// The activations of gated feed-forward layers.
#pragma once

#include "kernels/cuda/activation.h"

namespace llmrt::cuda {

template <Activation kKind> __device__ __forceinline__ float activate(float x) {
  if constexpr (kKind == Activation::silu)
    return __fdividef(x, 1.0f + __expf(-x)); // 0 where the exponential is too large to divide by
  else if constexpr (kKind == Activation::gelu_tanh)
    return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
  else
    return 0.5f * x * (1.0f + erff(x * 0.7071067811865476f));
}
__device__ __forceinline__ float activate(Activation kind, float x) {
  return kind == Activation::silu        ? activate<Activation::silu>(x)
         : kind == Activation::gelu_tanh ? activate<Activation::gelu_tanh>(x)
                                         : activate<Activation::gelu>(x);
}

} // namespace llmrt::cuda
