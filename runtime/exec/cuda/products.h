// Products of many rows through cuBLASLt, which picks an algorithm per shape; of fewer rows through our own kernels.
#pragma once

#include "kernels/cuda/linear.h"
#include "runtime/exec/algorithm_cache.h"
#include "runtime/exec/cuda/handles.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace llmrt::exec::cuda {

// What the current device's algorithms hold for: the device, the driver, the library.
std::string algorithm_context();

// The plan's choice of kernels for a product: ours that streams the weight for so many rows at most, ours for large
// weights for so many, the library's for more; and up to how many rows its neighbours are done in the same launch.
struct ProductRows {
  int64_t stream = 0, wide = 0, fused = 0, paired = 0;
};

// Whether, of p.M rows, a kernel for large weights does the product, with the gate of its two halves if `gated`.
bool wide_product(const llmrt::cuda::Linear &p, ProductRows rows, bool gated);

// Belongs to one rank: its handle, workspace and the algorithms it has chosen.
class Products {
public:
  // `workspace_bytes`: what the library's products share.
  // `cache`: where algorithms come from that were chosen before, and go once chosen; may be null.
  explicit Products(size_t workspace_bytes, std::shared_ptr<AlgorithmCache> cache = nullptr);
  ~Products();
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  // How it waits for the stream, where it times algorithms: what is queued there may itself wait for other ranks. By default,
  // for as long as it takes.
  using Wait = std::function<cudaError_t(cudaEvent_t)>;
  void wait_by(Wait wait) { wait_ = std::move(wait); }

  // out = input · weightᵀ (+ bias). `bias_like_out`: the bias once more, in out_type, for the library's epilogue.
  void linear(const llmrt::cuda::Linear &p, ProductRows rows, const void *bias_like_out, cudaStream_t stream);
  // out[M, N / 2] = kind(first half of the product) · second half, where wide_product() says so.
  void gated(const llmrt::cuda::Linear &p, llmrt::cuda::Activation kind, cudaStream_t stream);

private:
  struct Algorithm;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int, int, int>;
  bool recall(Algorithm &a) const;
  Algorithm &find(const llmrt::cuda::Linear &p, bool bias);
  void choose(Algorithm &a, const std::function<cublasStatus_t(const cublasLtMatmulAlgo_t &)> &run, cudaStream_t stream);

  std::shared_ptr<AlgorithmCache> cache_;
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_; // the library's
  Wait wait_ = cudaEventSynchronize;
  std::map<Key, std::unique_ptr<Algorithm>> algorithms_;
};

} // namespace llmrt::exec::cuda
