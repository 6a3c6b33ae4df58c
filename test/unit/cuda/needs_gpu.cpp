// Where there is no GPU, these tests say so once, and none of them runs.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace {

struct NeedsGpu : ::testing::Environment {
  void SetUp() override {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess)
      FAIL() << "these tests need an NVIDIA GPU, and CUDA says: " << cudaGetErrorString(status)
             << ". Without one, run those without the label gpu (ctest -LE gpu)";
  }
};

const auto *const registered = ::testing::AddGlobalTestEnvironment(new NeedsGpu);

} // namespace
