// Turns failures of CUDA, cuBLASLt and NCCL into llmrt::Error with the call and the library's own words.
#pragma once

#include "runtime/support/error.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

namespace llmrt::exec::cuda {

// What a device or a library of CUDA's refused, which does not know for which rank.
class DeviceError : public Error {
public:
  using Error::Error;
};

inline void check(cudaError_t status, const char *call) {
  if (status != cudaSuccess)
    throw DeviceError(std::string("CUDA: ") + call + " failed: " + cudaGetErrorString(status));
}
inline void check(cublasStatus_t status, const char *call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(std::string("cuBLASLt: ") + call + " failed: " + cublasGetStatusString(status));
}
inline void check(ncclResult_t status, const char *call) {
  if (status != ncclSuccess)
    throw DeviceError(std::string("NCCL: ") + call + " failed: " + ncclGetErrorString(status));
}

} // namespace llmrt::exec::cuda

#define LLMRT_CHECK(call) ::llmrt::exec::cuda::check((call), #call)
