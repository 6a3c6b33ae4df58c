// Memory set by a kernel, for graphs that are to hold nothing else.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/fill.h"

#include <algorithm>

namespace llmrt::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void fill_kernel(Fill p) {
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < p.width * p.height; i += int64_t(gridDim.x) * kThreads) {
    char *const at = static_cast<char *>(p.to) + i / p.width * p.pitch_bytes + i % p.width * p.element_bytes;
    if (p.element_bytes == 4)
      *reinterpret_cast<uint32_t *>(at) = p.value;
    else if (p.element_bytes == 2)
      *reinterpret_cast<uint16_t *>(at) = static_cast<uint16_t>(p.value);
    else
      *reinterpret_cast<uint8_t *>(at) = static_cast<uint8_t>(p.value);
  }
}

} // namespace

cudaGraphNode_t add_fill(cudaGraph_t graph, const cudaGraphNode_t *after, size_t count, const Fill &p) {
  Fill copy = p;
  void *arguments[] = {&copy};
  cudaKernelNodeParams node{};
  node.func = reinterpret_cast<void *>(fill_kernel);
  node.gridDim = dim3(static_cast<unsigned>(std::clamp<int64_t>(ceil_div(p.width * p.height, kThreads), 1, 1024)));
  node.blockDim = dim3(kThreads);
  node.kernelParams = arguments;
  cudaGraphNode_t added = nullptr;
  require(cudaGraphAddKernelNode(&added, graph, after, count, &node), "adding a node to a graph");
  return added;
}

} // namespace llmrt::cuda
