#include "runtime/exec/cuda/products.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace llmrt::exec::cuda {

namespace {

constexpr int kCandidates = 32, kFinalists = 5;
// Finalists run by turns, this long each, in an odd number of rounds. What they draw heats the device up, and its clock moves by a fifth
// within some ten milliseconds, so only neighbours can be compared: timed one after the other, a candidate that was 13% slower has passed
// for 3% faster (down of 72B's half, 256 rows, on an H200). Another than the library's first choice has to be faster by more than
// chance.
constexpr int kRounds = 5;
constexpr float kTurnMs = 0.3f, kFaster = 0.97f;

// Decode steps come in few sizes and again and again; so do full chunks of prompts. Other sizes take the library's first
// choice.
bool worth_timing(int64_t rows) { return rows <= 512 || rows % 1024 == 0; }

cudaDataType_t library_type(llmrt::cuda::DType t) {
  return t == llmrt::cuda::DType::f32 ? CUDA_R_32F : t == llmrt::cuda::DType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

} // namespace

// Row-major out[M, N] = x[M, K] · w[N, K]ᵀ is column-major outᵀ[N, M] = op(w) · xᵀ with op transposing the K × N matrix
// that column-major reading sees in w.
struct Products::Algorithm {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t weight = nullptr, input = nullptr, out = nullptr;
  std::string name; // of the shape, in the cache
  cublasLtMatmulAlgo_t algo{};
  std::vector<cublasLtMatmulAlgo_t> candidates; // to be timed at the first product; empty: `algo` stands

  ~Algorithm() {
    if (operation)
      cublasLtMatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t layout : {weight, input, out})
      if (layout)
        cublasLtMatrixLayoutDestroy(layout);
  }
};

std::string algorithm_context() {
  int device = 0, driver = 0;
  LLMRT_CHECK(cudaGetDevice(&device));
  LLMRT_CHECK(cudaDriverGetVersion(&driver));
  cudaDeviceProp prop;
  LLMRT_CHECK(cudaGetDeviceProperties(&prop, device));
  return std::string(prop.name) + ", " + std::to_string(prop.multiProcessorCount) + " SMs, driver " + std::to_string(driver) +
         ", cublasLt " + std::to_string(cublasLtGetVersion()) + ", by turns";
}

Products::Products(size_t workspace_bytes, std::shared_ptr<AlgorithmCache> cache)
    : cache_(std::move(cache)), workspace_(workspace_bytes, "the workspace of matrix products") {
  LLMRT_CHECK(cublasLtCreate(&handle_));
}

Products::~Products() {
  algorithms_.clear();
  cublasLtDestroy(handle_);
}

// The algorithm that an earlier start has chosen, if the library still takes it for the shape.
bool Products::recall(Algorithm &a) const {
  const std::optional<AlgorithmBytes> bytes = cache_ ? cache_->find(a.name) : std::nullopt;
  cublasLtMatmulAlgo_t algo;
  if (!bytes || bytes->size() != sizeof(algo))
    return false;
  std::memcpy(&algo, bytes->data(), sizeof(algo));
  cublasLtMatmulHeuristicResult_t result{};
  if (cublasLtMatmulAlgoCheck(handle_, a.operation, a.weight, a.input, a.out, a.out, &algo, &result) != CUBLAS_STATUS_SUCCESS ||
      result.workspaceSize > workspace_.size())
    return false;
  a.algo = algo;
  return true;
}

Products::Algorithm &Products::find(const llmrt::cuda::Linear &p, bool bias) {
  const Key key{p.M, p.N, p.K, p.ld_input, p.ld_out, static_cast<int>(p.act), static_cast<int>(p.out_type), bias};
  std::unique_ptr<Algorithm> &slot = algorithms_[key];
  if (slot)
    return *slot;
  auto a = std::make_unique<Algorithm>();
  const cudaDataType_t in = library_type(p.act), out = library_type(p.out_type);
  LLMRT_CHECK(cublasLtMatmulDescCreate(&a->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t transpose = CUBLAS_OP_T;
  LLMRT_CHECK(cublasLtMatmulDescSetAttribute(a->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof(transpose)));
  if (bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    LLMRT_CHECK(cublasLtMatmulDescSetAttribute(a->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
  }
  LLMRT_CHECK(cublasLtMatrixLayoutCreate(&a->weight, in, p.K, p.N, p.K));
  LLMRT_CHECK(cublasLtMatrixLayoutCreate(&a->input, in, p.K, p.M, p.ld_input));
  LLMRT_CHECK(cublasLtMatrixLayoutCreate(&a->out, out, p.N, p.M, p.ld_out));

  for (const int64_t part : {p.M, p.N, p.K, p.ld_input, p.ld_out, int64_t(p.act), int64_t(p.out_type), int64_t(bias)})
    a->name += (a->name.empty() ? "" : " ") + std::to_string(part);
  if (worth_timing(p.M) && recall(*a))
    return *(slot = std::move(a));

  cublasLtMatmulPreference_t preference = nullptr;
  LLMRT_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  const size_t workspace = workspace_.size();
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
  cublasLtMatmulHeuristicResult_t results[kCandidates];
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, a->operation, a->weight, a->input, a->out, a->out,
                                                               preference, kCandidates, results, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0)
    throw Error("cuBLASLt has no algorithm for a product of " + std::to_string(p.M) + " x " + std::to_string(p.N) + " x " +
                std::to_string(p.K) + ": " + cublasGetStatusString(status));
  a->algo = results[0].algo;
  if (worth_timing(p.M))
    for (int i = 0; i < found; ++i)
      a->candidates.push_back(results[i].algo);
  return *(slot = std::move(a));
}

// Runs every candidate on the product at hand, whose result stays the same, then the fastest by turns with the library's first choice.
void Products::choose(Algorithm &a, const std::function<cublasStatus_t(const cublasLtMatmulAlgo_t &)> &run,
                      cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  LLMRT_CHECK(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone)
    return; // cannot be timed; the next eager product will be
  LLMRT_CHECK(cudaGetLastError()); // an error of what was launched before must not be taken for a candidate's
  const Event start(cudaEventDefault), stop(cudaEventDefault);
  constexpr float kNever = 1e30f;
  auto milliseconds = [&](const cublasLtMatmulAlgo_t &candidate, int runs) {
    // Warms up. Some candidates do not run after all, and leave an error that nobody else is to meet.
    if (run(candidate) != CUBLAS_STATUS_SUCCESS || cudaPeekAtLastError() != cudaSuccess) {
      cudaGetLastError();
      return kNever;
    }
    cudaEventRecord(start, stream);
    for (int i = 0; i < runs; ++i)
      run(candidate);
    cudaEventRecord(stop, stream);
    float ms = kNever;
    return wait_(stop) == cudaSuccess && cudaEventElapsedTime(&ms, start, stop) == cudaSuccess
               ? ms / static_cast<float>(runs)
               : kNever;
  };
  std::vector<std::pair<float, size_t>> times;
  for (size_t i = 0; i < a.candidates.size(); ++i)
    times.emplace_back(milliseconds(a.candidates[i], 2), i);
  const std::pair<float, size_t> first = times.front(); // a.algo
  std::sort(times.begin() + 1, times.end());
  times.resize(std::min<size_t>(times.size(), kFinalists));
  const auto turn = [&](const std::pair<float, size_t> &time) {
    const int runs = time.first < kNever ? std::clamp(static_cast<int>(kTurnMs / std::max(time.first, 1e-3f)), 1, 32) : 0;
    return runs ? milliseconds(a.candidates[time.second], runs) : kNever;
  };
  std::vector<std::array<float, kRounds>> shares(times.size()); // of the first one's time in the same round
  for (int round = 0; round < kRounds; ++round) {
    const float with = turn(first);
    for (size_t i = 1; i < times.size(); ++i)
      shares[i][static_cast<size_t>(round)] = turn(times[i]) / with;
  }
  float best = kFaster;
  for (size_t i = 1; i < times.size(); ++i) {
    std::nth_element(shares[i].begin(), shares[i].begin() + kRounds / 2, shares[i].end());
    if (shares[i][kRounds / 2] < best) {
      best = shares[i][kRounds / 2];
      a.algo = a.candidates[times[i].second];
    }
  }
  a.candidates.clear();
  if (cache_ && (first.first < kNever || best < kFaster)) { // something runs
    AlgorithmBytes bytes(sizeof(a.algo));
    std::memcpy(bytes.data(), &a.algo, sizeof(a.algo));
    cache_->put(a.name, std::move(bytes));
  }
}

bool wide_product(const llmrt::cuda::Linear &p, ProductRows rows, bool gated) {
  if (p.M <= rows.stream || p.M > rows.wide)
    return false;
  return llmrt::cuda::wide_linear_applies(p, gated) || (gated && p.M > llmrt::cuda::kWideMaxGatedRows && llmrt::cuda::gated_linear_applies(p));
}

void Products::gated(const llmrt::cuda::Linear &p, llmrt::cuda::Activation kind, cudaStream_t stream) {
  if (p.M > llmrt::cuda::kWideMaxGatedRows)
    return llmrt::cuda::gated_linear(p, kind, stream);
  llmrt::cuda::wide_linear(p, kind, stream);
}

void Products::linear(const llmrt::cuda::Linear &p, ProductRows rows, const void *bias_like_out, cudaStream_t stream) {
  if (p.M <= 0)
    return;
  if (wide_product(p, rows, false))
    return llmrt::cuda::wide_linear(p, std::nullopt, stream);
  // cuBLASLt wants one input type and 16-byte rows; other shapes are our kernel's.
  const int64_t size = static_cast<int64_t>(llmrt::cuda::dtype_bytes(p.act));
  const bool library = p.M > rows.stream && p.act == p.weight_type && p.K * size % 16 == 0 &&
                       p.ld_input * size % 16 == 0;
  if (!library)
    return llmrt::cuda::skinny_linear(p, stream);
  const bool bias = p.bias != nullptr;
  Algorithm &a = find(p, bias);
  if (bias)
    LLMRT_CHECK(cublasLtMatmulDescSetAttribute(a.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_like_out,
                                               sizeof(bias_like_out)));
  const auto run = [&](const cublasLtMatmulAlgo_t &algo) {
    const float one = 1.0f, zero = 0.0f;
    return cublasLtMatmul(handle_, a.operation, &one, p.weight, a.weight, p.input, a.input, &zero, p.out, a.out, p.out, a.out,
                          &algo, workspace_.data(), workspace_.size(), stream);
  };
  if (!a.candidates.empty())
    choose(a, run, stream);
  LLMRT_CHECK(run(a.algo));
}

} // namespace llmrt::exec::cuda
