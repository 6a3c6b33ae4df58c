// Gated products of many rows: kernels/cuda/gated.cu beside cuBLASLt's first choice and the activation's
// kernel. Graphs over distinct weights are replayed for so long that the device's power limit acts, by turns,
// so that it acts on both alike.
#include "test/bench/bench_gated.h"

#include "kernels/cuda/gated_shape.h"
#include "kernels/cuda/rows.h"

#include <cublasLt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace llmrt::cuda;

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    if (auto status = (call); static_cast<int>(status) != 0) {                                               \
      std::fprintf(stderr, "%s: status %d\n", #call, static_cast<int>(status));                              \
      std::exit(1);                                                                                          \
    }                                                                                                        \
  } while (0)

namespace {

constexpr size_t kWorkspace = 32 << 20;

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

std::string name_of(const GatedShape &s) {
  return std::to_string(s.rows) + "x" + std::to_string(s.columns) + " cluster " + std::to_string(s.cluster) +
         " stages " + std::to_string(s.stages) + " band " + std::to_string(s.band);
}

} // namespace

void bench_gated(bool sweep, const __nv_bfloat16 *data, size_t pool, const __nv_bfloat16 *x, __nv_bfloat16 *y,
                 cudaStream_t stream) {
  struct Model {
    const char *name;
    int64_t F, K;
  };
  cublasLtHandle_t handle;
  void *workspace;
  __nv_bfloat16 *product; // [M, 2 F]
  CHECK(cublasLtCreate(&handle));
  CHECK(cudaMalloc(&workspace, kWorkspace));
  CHECK(cudaMalloc(reinterpret_cast<void **>(&product), 8192ull * 2 * 18944 * 2));
  for (const Model &m : {Model{"7B", 18944, 3584}, Model{"72B/2", 14784, 8192}, Model{"8B", 14336, 4096}}) {
    if (sweep && m.F != 18944)
      break;
    for (int64_t M : {96, 128, 160, 192, 256, 512, 2048, 8192}) {
      if (sweep && (M == 96 || M == 160))
        continue;
      const size_t bytes = 2 * m.F * m.K * 2;
      const int count = M > 1024 ? 2 : static_cast<int>(std::min<size_t>(pool / bytes, 10));
      const auto weight = [&](int i) { return data + i * 2 * m.F * m.K; };
      const LibraryProduct library(handle, workspace, M, 2 * m.F, m.K);
      std::vector<std::unique_ptr<Contender>> contenders;
      contenders.push_back(std::make_unique<Contender>(
          "cuBLASLt, activation", count,
          [&](int i) {
            library.run(weight(i), x, product, stream);
            gated_act(
                {y, m.F, product, product + m.F, 2 * m.F, 2 * m.F, M, m.F, Activation::silu, DType::bf16},
                stream);
          },
          stream));
      const auto ours = [&](const GatedShape &shape) {
        contenders.push_back(std::make_unique<Contender>(
            name_of(shape), count,
            [&](int i) {
              gated_linear({y, m.F, x, m.K, weight(i), nullptr, M, 2 * m.F, m.K, DType::bf16, DType::bf16,
                            DType::bf16},
                           Activation::silu, shape, stream);
            },
            stream));
      };
      if (sweep) {
        contenders.push_back(std::make_unique<Contender>(
            "cuBLASLt alone", count, [&](int i) { library.run(weight(i), x, product, stream); }, stream));
        for (GatedShape shape : gated_shapes()) {
          if (M <= 128 ? shape.rows > 128 : M <= 192 ? shape.rows != 192 : shape.rows == 192)
            continue;
          ours(shape);
          if (shape.rows == 256 && shape.columns == 72 && shape.cluster == 2) {
            shape.stages = 3;
            ours(shape);
            shape.stages = 8;
            if (M > 1024) {
              for (int band : {4, 16})
                shape.band = band, ours(shape);
            }
          }
        }
      } else {
        ours(choose_gated_shape(M, m.F));
      }
      const float turn = sweep ? 80 : M >= 256 ? 75 : 20;
      for (int turns = 0; turns < (sweep ? 3 : 4); ++turns)
        for (auto &c : contenders)
          c->turn(turn);
      if (sweep)
        std::printf("gated %s M=%lld\n", m.name, static_cast<long long>(M));
      else
        std::printf("gated %-5s M=%-4lld", m.name, static_cast<long long>(M));
      for (const auto &c : contenders)
        std::printf("%s %s: %.1f us = %.0f TFLOP/s%s", sweep ? " " : "  ", c->name.c_str(), c->microseconds(),
                    4e-6 * M * m.F * m.K / c->microseconds(), sweep ? "\n" : "");
      if (!sweep)
        std::printf("  (%.3f of it)\n", contenders[1]->microseconds() / contenders[0]->microseconds());
      std::fflush(stdout);
    }
  }
  CHECK(cudaFree(product));
  CHECK(cudaFree(workspace));
  CHECK(cublasLtDestroy(handle));
}
