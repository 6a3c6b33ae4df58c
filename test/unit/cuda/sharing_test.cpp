// Ranks that share a GPU launch the same kernels at other sizes at the same time: a thread each, a stream each, and every
// result is what the thread alone gets.
#include "test/unit/cuda/device_data.h"

#include <atomic>
#include <thread>

namespace llmrt::cuda::testing {
namespace {

// Calls `work(M, stream, out)` over and over in two threads of different M, and counts results unlike the first.
template <typename Work> void check_side_by_side(int64_t N, Work &&work) {
  std::atomic<int> failed{0}, wrong{0}, ready{0};
  auto serve = [&](int64_t M, int rounds) {
    cudaStream_t stream = nullptr;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
      ++failed;
      ++ready;
      return;
    }
    const size_t bytes = static_cast<size_t>(M * N) * 4;
    std::vector<float> first(static_cast<size_t>(M * N)), got(first.size());
    void *out = nullptr;
    cudaMalloc(&out, bytes);
    auto once = [&](std::vector<float> &to) {
      cudaMemsetAsync(out, 0xff, bytes, stream); // NaN where nothing is written
      try {
        work(M, stream, static_cast<float *>(out));
      } catch (const std::exception &) {
        ++failed;
      }
      cudaMemcpyAsync(to.data(), out, bytes, cudaMemcpyDeviceToHost, stream);
      if (cudaStreamSynchronize(stream) != cudaSuccess || cudaGetLastError() != cudaSuccess)
        ++failed;
    };
    once(first);
    ++ready;
    while (ready < 2)
      std::this_thread::yield();
    for (int i = 0; i < rounds; ++i) {
      once(got);
      wrong += std::memcmp(got.data(), first.data(), bytes) != 0;
    }
    cudaFree(out);
    cudaStreamDestroy(stream);
  };
  std::thread other([&] { serve(3, 2000); });
  serve(17, 2000);
  other.join();
  EXPECT_EQ(failed, 0) << "launches or runs that failed";
  EXPECT_EQ(wrong, 0) << "results unlike those of the first run";
}

TEST(Sharing, ProductsOfOtherSizesAtOnce) {
  constexpr int64_t N = 3584, K = 1024;
  Tensor x(17 * K, DType::bf16, 1), w(N * K, DType::bf16, 2, 0.03f);
  check_side_by_side(N, [&](int64_t M, cudaStream_t stream, float *out) {
    skinny_linear({out, N, x.device.get(), K, w.device.get(), nullptr, M, N, K, DType::bf16, DType::bf16, DType::f32}, stream);
  });
}

} // namespace
} // namespace llmrt::cuda::testing
