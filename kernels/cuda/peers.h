// What kernels of ranks that write each other's memory have in common.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llmrt::cuda {

inline constexpr int kMaxPeers = 16;

// *word = value, in pinned host memory, once the stream has come here.
void tell_host(uint32_t *word, uint32_t value, cudaStream_t stream);

} // namespace llmrt::cuda
