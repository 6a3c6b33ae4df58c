// Memory that a graph sets.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace llmrt::cuda {

// `height` rows of `width` elements of 1, 2 or 4 bytes, `pitch_bytes` apart, become `value`.
struct Fill {
  void *to;
  int64_t pitch_bytes, width, height;
  uint32_t value;
  int element_bytes;
};
// A kernel that does so, as a node of a graph behind these others.
cudaGraphNode_t add_fill(cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, const Fill &p);

} // namespace llmrt::cuda
