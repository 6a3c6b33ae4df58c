// Products of many rows through cuBLASLt, which picks an algorithm per shape; of few rows through our own kernel.
#pragma once

#include "kernels/cuda/kernels.h"
#include "runtime/exec/algorithm_cache.h"
#include "runtime/exec/cuda/handles.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

namespace llmrt::exec::cuda {

// What the current device's algorithms hold for: the device, the driver, the library.
std::string algorithm_context();

// Belongs to one rank: its handle, workspace and the algorithms it has chosen.
class Products {
public:
  // `cache`: where algorithms come from that were chosen before, and go once chosen; may be null.
  explicit Products(size_t workspace_bytes, std::shared_ptr<AlgorithmCache> cache = nullptr);
  ~Products();
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  // out = input · weightᵀ (+ bias). `bias_like_out`: the bias once more, in out_type, for the library's epilogue.
  void linear(const llmrt::cuda::Linear &p, const void *bias_like_out, cudaStream_t stream);

private:
  struct Algorithm;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int, int, int>;
  bool recall(Algorithm &a) const;
  Algorithm &find(const llmrt::cuda::Linear &p, bool bias);
  void choose(Algorithm &a, const std::function<cublasStatus_t(const cublasLtMatmulAlgo_t &)> &run, cudaStream_t stream);

  std::shared_ptr<AlgorithmCache> cache_;
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_;
  std::map<Key, std::unique_ptr<Algorithm>> algorithms_;
};

} // namespace llmrt::exec::cuda
