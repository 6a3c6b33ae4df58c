// Owners of CUDA things: device memory, pinned memory, streams, events, graphs. Device memory is allocated here only.
#pragma once

#include "runtime/exec/cuda/check.h"

#include <cstddef>
#include <string>
#include <utility>

namespace llmrt::exec::cuda {

// Device memory of the current device, zeroed. Throws llmrt::Error naming the purpose and both sizes.
class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(size_t bytes, const std::string &purpose);
  ~DeviceMemory() { reset(); }
  DeviceMemory(DeviceMemory &&other) noexcept { swap(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    DeviceMemory(std::move(other)).swap(*this);
    return *this;
  }
  std::byte *data() const { return data_; }
  size_t size() const { return size_; }

private:
  void swap(DeviceMemory &other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void reset();
  std::byte *data_ = nullptr;
  size_t size_ = 0;
};

// Page-locked host memory, which copies to and from a device run at full speed.
class PinnedMemory {
public:
  PinnedMemory() = default;
  explicit PinnedMemory(size_t bytes);
  ~PinnedMemory();
  PinnedMemory(PinnedMemory &&other) noexcept { swap(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept {
    PinnedMemory(std::move(other)).swap(*this);
    return *this;
  }
  std::byte *data() const { return data_; }
  size_t size() const { return size_; }

private:
  void swap(PinnedMemory &other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  std::byte *data_ = nullptr;
  size_t size_ = 0;
};

class Stream {
public:
  Stream() { LLMRT_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  operator cudaStream_t() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

class Event {
public:
  Event() : Event(cudaEventDisableTiming) {}
  explicit Event(unsigned flags) { LLMRT_CHECK(cudaEventCreateWithFlags(&event_, flags)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  operator cudaEvent_t() const { return event_; }

private:
  cudaEvent_t event_ = nullptr;
};

// Puts kernels in the place of the nodes of a graph that set memory. A chain of nothing but kernels is launched in a few
// microseconds, whatever its length; with anything else in it, every node costs some of the host's time.
void set_memory_by_kernels(cudaGraph_t graph);

// A captured graph, ready to launch.
class Graph {
public:
  explicit Graph(cudaGraph_t captured) {
    cudaError_t status = cudaSuccess;
    try {
      set_memory_by_kernels(captured);
      status = cudaGraphInstantiate(&exec_, captured, 0);
    } catch (...) {
      cudaGraphDestroy(captured);
      throw;
    }
    cudaGraphDestroy(captured);
    LLMRT_CHECK(status);
  }
  ~Graph() { cudaGraphExecDestroy(exec_); }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  void launch(cudaStream_t stream) const { LLMRT_CHECK(cudaGraphLaunch(exec_, stream)); }

private:
  cudaGraphExec_t exec_ = nullptr;
};

} // namespace llmrt::exec::cuda
