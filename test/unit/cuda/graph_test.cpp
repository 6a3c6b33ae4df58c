// Graphs in which kernels set memory: nothing but kernels, in the order captured, and the same bytes.
#include "runtime/exec/cuda/handles.h"
#include "test/unit/cuda/device_data.h"

#include <map>

namespace llmrt::exec::cuda {
namespace {

using llmrt::cuda::copy_rows;
using llmrt::cuda::testing::DeviceBytes;

std::map<cudaGraphNodeType, size_t> count_types(cudaGraph_t graph) {
  size_t count = 0;
  LLMRT_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  LLMRT_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  std::map<cudaGraphNodeType, size_t> types;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    LLMRT_CHECK(cudaGraphNodeGetType(node, &type));
    ++types[type];
  }
  return types;
}

TEST(Graph, KernelsSetMemory) {
  constexpr int64_t kRows = 37, kPitch = 512, kBytes = kRows * kPitch;
  DeviceBytes work(kBytes), first(kBytes), second(kBytes), third(kBytes);
  char *const data = work.as<char>();
  Stream stream;
  cudaGraph_t graph = nullptr;
  LLMRT_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  LLMRT_CHECK(cudaMemsetAsync(data, 0x11, kBytes, stream)); // with nothing in front of it
  copy_rows(first.get(), kPitch, data, kPitch, kRows, kPitch, stream);
  LLMRT_CHECK(cudaMemset2DAsync(data + 3, kPitch, 0x22, 101, kRows, stream));
  copy_rows(second.get(), kPitch, data, kPitch, kRows, kPitch, stream);
  LLMRT_CHECK(cudaMemsetAsync(data + 16, 0, 4, stream));
  LLMRT_CHECK(cudaMemsetAsync(data + 64, 0x33, 2, stream));
  copy_rows(third.get(), kPitch, data, kPitch, kRows, kPitch, stream);
  LLMRT_CHECK(cudaMemsetAsync(data, 0x44, kBytes, stream)); // with nothing behind it
  LLMRT_CHECK(cudaStreamEndCapture(stream, &graph));
  ASSERT_EQ(count_types(graph)[cudaGraphNodeTypeMemset], 5u);
  set_memory_by_kernels(graph);
  EXPECT_EQ(count_types(graph), (std::map<cudaGraphNodeType, size_t>{{cudaGraphNodeTypeKernel, 8}}));

  const Graph ready(graph);
  for (int round = 0; round < 2; ++round) {
    ready.launch(stream);
    LLMRT_CHECK(cudaStreamSynchronize(stream));
    std::vector<char> want(kBytes, 0x11);
    EXPECT_EQ(first.read<char>(), want);
    for (int64_t row = 0; row < kRows; ++row)
      std::fill_n(want.begin() + row * kPitch + 3, 101, 0x22);
    EXPECT_EQ(second.read<char>(), want);
    std::fill_n(want.begin() + 16, 4, 0);
    std::fill_n(want.begin() + 64, 2, 0x33);
    EXPECT_EQ(third.read<char>(), want);
    EXPECT_EQ(work.read<char>(), std::vector<char>(kBytes, 0x44));
  }
}

} // namespace
} // namespace llmrt::exec::cuda
