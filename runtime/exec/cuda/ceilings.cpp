#include "runtime/exec/cuda/ceilings.h"

#include "kernels/cuda/measure.h"
#include "runtime/exec/cuda/products.h"

#include <algorithm>
#include <vector>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

namespace {

class Timer {
public:
  Timer() {
    LLMRT_CHECK(cudaEventCreate(&start_));
    LLMRT_CHECK(cudaEventCreate(&stop_));
  }
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  // Median seconds of one call, after two that do not count.
  template <typename F> double median(int times, cudaStream_t stream, F &&f) {
    std::vector<float> milliseconds;
    for (int i = 0; i < times + 2; ++i) {
      LLMRT_CHECK(cudaEventRecord(start_, stream));
      f();
      LLMRT_CHECK(cudaEventRecord(stop_, stream));
      LLMRT_CHECK(cudaEventSynchronize(stop_));
      float ms = 0;
      LLMRT_CHECK(cudaEventElapsedTime(&ms, start_, stop_));
      if (i >= 2)
        milliseconds.push_back(ms);
    }
    std::nth_element(milliseconds.begin(), milliseconds.begin() + times / 2, milliseconds.end());
    return milliseconds[static_cast<size_t>(times / 2)] / 1e3;
  }

private:
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

} // namespace

Ceilings measure_device(k::DType type, const std::byte *data, size_t bytes) {
  Stream stream;
  Timer timer;
  Ceilings ceilings;
  DeviceMemory own;
  if (bytes < (size_t(512) << 20)) {
    own = DeviceMemory(size_t(512) << 20, "the memory that bandwidth is measured on");
    data = own.data(), bytes = own.size();
  }
  bytes = std::min(bytes, size_t(8) << 30) / 4096 * 4096;
  DeviceMemory sink(4096, "a checksum");
  ceilings.read_bytes_per_s =
      bytes / timer.median(5, stream, [&] { k::read_all(sink.data(), data, static_cast<int64_t>(bytes), stream); });

  const int64_t n = 8192, size = static_cast<int64_t>(k::dtype_bytes(type));
  const size_t matrix = static_cast<size_t>(n * n * size);
  DeviceMemory x(matrix, "a matrix to measure with"), w(matrix, "a matrix to measure with"), y(matrix, "a matrix to measure with");
  k::fill_random(x.data(), n * n, type, 1, stream);
  k::fill_random(w.data(), n * n, type, 2, stream);
  Products products(32 << 20);
  const k::Linear call{y.data(), n, x.data(), n, w.data(), nullptr, n, n, n, type, type, type};
  ceilings.matmul_flops_per_s = 2.0 * n * n * n / timer.median(5, stream, [&] { products.linear(call, {}, nullptr, stream); });

  const PinnedMemory from(matrix);
  ceilings.to_device_bytes_per_s =
      matrix / timer.median(3, stream, [&] { LLMRT_CHECK(cudaMemcpyAsync(x.data(), from.data(), matrix, cudaMemcpyHostToDevice, stream)); });
  return ceilings;
}

} // namespace llmrt::exec::cuda
