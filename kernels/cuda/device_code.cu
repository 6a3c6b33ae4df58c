#include "kernels/cuda/common.cuh"
#include "kernels/cuda/device_code.h"

namespace llmrt::cuda {

namespace {
__global__ void nothing_kernel() {}
} // namespace

bool has_code_for_device() {
  cudaFuncAttributes attributes;
  const cudaError_t status = cudaFuncGetAttributes(&attributes, nothing_kernel);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction || status == cudaErrorUnsupportedPtxVersion) {
    cudaGetLastError(); // not to be reported again by the next call
    return false;
  }
  require(status, "attributes");
  return true;
}

std::string built_for() {
  std::string text;
  for (const int arch : {__CUDA_ARCH_LIST__}) {
    text += (text.empty() ? "" : ", ") + std::to_string(arch / 100) + "." + std::to_string(arch % 100 / 10);
#ifdef LLMRT_HOPPER
    text += arch == 900 ? "a" : "";
#endif
  }
  return text;
}

} // namespace llmrt::cuda
