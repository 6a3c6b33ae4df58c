// Graphs as they are launched fastest.
#include "kernels/cuda/fill.h"
#include "runtime/exec/cuda/handles.h"

#include <vector>

namespace llmrt::exec::cuda {

namespace {

using Neighbours = cudaError_t (*)(cudaGraphNode_t, cudaGraphNode_t *, cudaGraphEdgeData *, size_t *);

std::vector<cudaGraphNode_t> neighbours(Neighbours of, cudaGraphNode_t node) {
  size_t count = 0;
  LLMRT_CHECK(of(node, nullptr, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  std::vector<cudaGraphEdgeData> edges(count); // all plain, where a node is no kernel
  if (count)
    LLMRT_CHECK(of(node, nodes.data(), edges.data(), &count));
  return nodes;
}

// Puts a kernel in the place of a node that sets memory.
void replace(cudaGraph_t graph, cudaGraphNode_t node) {
  cudaMemsetParams set{};
  LLMRT_CHECK(cudaGraphMemsetNodeGetParams(node, &set));
  const std::vector<cudaGraphNode_t> before = neighbours(cudaGraphNodeGetDependencies, node);
  const std::vector<cudaGraphNode_t> after = neighbours(cudaGraphNodeGetDependentNodes, node);
  const cudaGraphNode_t kernel = llmrt::cuda::add_fill(
      graph, before.data(), before.size(),
      {set.dst, static_cast<int64_t>(set.pitch), static_cast<int64_t>(set.width), static_cast<int64_t>(set.height), set.value,
       static_cast<int>(set.elementSize)});
  const std::vector<cudaGraphNode_t> from(after.size(), kernel);
  if (!after.empty())
    LLMRT_CHECK(cudaGraphAddDependencies(graph, from.data(), after.data(), nullptr, after.size()));
  LLMRT_CHECK(cudaGraphDestroyNode(node));
}

} // namespace

void set_memory_by_kernels(cudaGraph_t graph) {
  size_t count = 0;
  LLMRT_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  LLMRT_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    LLMRT_CHECK(cudaGraphNodeGetType(node, &type));
    if (type == cudaGraphNodeTypeMemset)
      replace(graph, node);
  }
}

} // namespace llmrt::exec::cuda
