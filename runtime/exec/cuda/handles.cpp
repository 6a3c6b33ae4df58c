#include "runtime/exec/cuda/handles.h"

namespace llmrt::exec::cuda {

DeviceMemory::DeviceMemory(size_t bytes, const std::string &purpose) : size_(bytes) {
  if (bytes == 0)
    return;
  void *data = nullptr;
  if (const cudaError_t status = cudaMalloc(&data, bytes); status != cudaSuccess) {
    cudaGetLastError(); // not to be reported again by the next call
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    int device = 0;
    cudaGetDevice(&device);
    throw Error(purpose + " needs " + std::to_string(bytes) + " bytes on CUDA device " + std::to_string(device) +
                ", which has " + std::to_string(free) + " of " + std::to_string(total) + " free (" +
                cudaGetErrorString(status) +
                "): end what else runs there, or compile the plan with a smaller --memory-utilization");
  }
  data_ = static_cast<std::byte *>(data);
  // Waited for: the streams of this backend do not wait for the default one, and must not be overtaken by zeros.
  try {
    LLMRT_CHECK(cudaMemset(data_, 0, bytes));
    LLMRT_CHECK(cudaStreamSynchronize(nullptr));
  } catch (...) {
    reset(); // no destructor runs
    throw;
  }
}

void DeviceMemory::reset() {
  if (data_)
    cudaFree(data_);
  data_ = nullptr;
}

PinnedMemory::PinnedMemory(size_t bytes) : size_(bytes) {
  void *data = nullptr;
  if (bytes)
    LLMRT_CHECK(cudaHostAlloc(&data, bytes, cudaHostAllocPortable));
  data_ = static_cast<std::byte *>(data);
}

PinnedMemory::~PinnedMemory() {
  if (data_)
    cudaFreeHost(data_);
}

} // namespace llmrt::exec::cuda
