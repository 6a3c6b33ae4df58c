#include "kernels/cuda/tensor_map.h"

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace llmrt::cuda {

namespace {

// The driver's function, asked for at run time: nothing links with the driver, so that machines without one can start.
decltype(&cuTensorMapEncodeTiled) encode_function() {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result) != cudaSuccess ||
      result != cudaDriverEntryPointSuccess || !found)
    throw std::runtime_error("the CUDA driver has no cuTensorMapEncodeTiled: it is older than CUDA 12, update it");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
}

} // namespace

CUtensorMap tensor_map(DType type, const void *base, std::initializer_list<uint64_t> dims, std::initializer_list<uint64_t> strides,
                       std::initializer_list<uint32_t> box, bool swizzled) {
  static const auto encode = encode_function();
  // A line of a box is 128 bytes; to fetch 256 at once costs an H200 up to 3% of its bandwidth (products of 17 to 32 rows).
  CUtensorMap map;
  const uint32_t steps[5] = {1, 1, 1, 1, 1};
  const CUresult status = encode(
      &map, type == DType::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<uint32_t>(dims.size()),
      const_cast<void *>(base), dims.begin(), strides.begin(), box.begin(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    throw std::runtime_error("the CUDA driver takes no tensor map of this array (CUresult " + std::to_string(status) + ")");
  return map;
}

} // namespace llmrt::cuda
