// What benches of products share: cuBLASLt's first choice as a peer, and graphs that are replayed by turns.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    if (auto status = (call); static_cast<int>(status) != 0) {                                               \
      std::fprintf(stderr, "%s: status %d\n", #call, static_cast<int>(status));                              \
      std::exit(1);                                                                                          \
    }                                                                                                        \
  } while (0)

namespace llmrt::bench {

inline constexpr size_t kWorkspace = 32 << 20;

// A product as cuBLASLt's heuristic would have it.
class LibraryProduct {
public:
  LibraryProduct(cublasLtHandle_t handle, void *workspace, int64_t M, int64_t N, int64_t K)
      : handle_(handle), workspace_(workspace) {
    const cublasOperation_t transpose = CUBLAS_OP_T;
    CHECK(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                         sizeof(transpose)));
    CHECK(cublasLtMatrixLayoutCreate(&weight_, CUDA_R_16BF, K, N, K));
    CHECK(cublasLtMatrixLayoutCreate(&input_, CUDA_R_16BF, K, M, K));
    CHECK(cublasLtMatrixLayoutCreate(&out_, CUDA_R_16BF, N, M, N));
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &kWorkspace, sizeof(kWorkspace)));
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, operation_, weight_, input_, out_, out_, preference, 1,
                                         &result, &found));
    CHECK(found == 1 ? 0 : 1);
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    algorithm_ = result.algo;
  }
  ~LibraryProduct() {
    for (cublasLtMatrixLayout_t layout : {weight_, input_, out_})
      cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation_);
  }
  LibraryProduct(const LibraryProduct &) = delete;
  void run(const void *weight, const void *x, void *y, cudaStream_t stream) const {
    const float one = 1, zero = 0;
    CHECK(cublasLtMatmul(handle_, operation_, &one, weight, weight_, x, input_, &zero, y, out_, y, out_,
                         &algorithm_, workspace_, kWorkspace, stream));
  }

private:
  cublasLtHandle_t handle_;
  void *workspace_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t weight_ = nullptr, input_ = nullptr, out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

// A graph of `count` products, and what replays of it have taken.
class Contender {
public:
  Contender(std::string name, int count, const std::function<void(int)> &work, cudaStream_t stream)
      : name(std::move(name)), count_(count), stream_(stream) {
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < count; ++i)
      work(i);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec_, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaEventCreate(&begin_));
    CHECK(cudaEventCreate(&end_));
    replay(1);
    once_ = std::max(replay(1), 1e-3f);
  }
  ~Contender() {
    cudaGraphExecDestroy(exec_);
    cudaEventDestroy(begin_), cudaEventDestroy(end_);
  }
  Contender(const Contender &) = delete;
  // Runs for so long, and counts the second half.
  void turn(float milliseconds) {
    const int replays = std::max(1, static_cast<int>(milliseconds / 2 / once_));
    replay(replays);
    milliseconds_ += replay(replays), replays_ += replays;
  }
  double microseconds() const { return milliseconds_ * 1000 / replays_ / count_; }

  const std::string name;

private:
  float replay(int times) {
    float ms;
    CHECK(cudaEventRecord(begin_, stream_));
    for (int i = 0; i < times; ++i)
      CHECK(cudaGraphLaunch(exec_, stream_));
    CHECK(cudaEventRecord(end_, stream_));
    CHECK(cudaEventSynchronize(end_));
    CHECK(cudaEventElapsedTime(&ms, begin_, end_));
    return ms;
  }
  int count_;
  cudaStream_t stream_;
  cudaGraphExec_t exec_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  double milliseconds_ = 0;
  int replays_ = 0;
  float once_ = 0;
};

} // namespace llmrt::bench
