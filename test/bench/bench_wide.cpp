// Products of some rows by large weights: kernels/cuda/wide.cu beside cuBLASLt's first choice (and the activation's kernel, where gates
// are behind), up to 16 rows also beside the kernels for few. Graphs over distinct weights are replayed by turns.
#include "test/bench/bench_wide.h"
#include "test/bench/products.h"

#include "kernels/cuda/rows.h"
#include "kernels/cuda/wide_shape.h"

#include <memory>
#include <optional>
#include <vector>

using namespace llmrt::bench;
using namespace llmrt::cuda;

namespace {

struct Weight {
  const char *name;
  int64_t N, K;
  bool gated = false;
};
constexpr Weight kWeights[] = {
    {"gate+up 7B", 37888, 3584, true},    {"down 7B", 3584, 18944},    {"qkv 7B", 4608, 3584},    {"output 7B", 3584, 3584},
    {"gate+up 8B", 28672, 4096, true},    {"down 8B", 4096, 14336},    {"qkv 8B", 6144, 4096},    {"output 8B", 4096, 4096},
    {"gate+up 14B", 27648, 5120, true},   {"down 14B", 5120, 13824},   {"qkv 14B", 7168, 5120},   {"output 14B", 5120, 5120},
    {"gate+up 7B/2", 18944, 3584, true},  {"down 7B/2", 3584, 9472},   {"qkv 7B/2", 2304, 3584},  {"output 7B/2", 3584, 1792},
    {"gate+up 72B/2", 29568, 8192, true}, {"down 72B/2", 8192, 14784}, {"qkv 72B/2", 5120, 8192}, {"output 72B/2", 8192, 4096},
};

std::string name_of(const WideShape &s) {
  return std::to_string(s.columns) + (s.splits > 1 ? "/" + std::to_string(s.splits) : "");
}

} // namespace

void bench_wide(bool sweep, double bandwidth, const __nv_bfloat16 *data, size_t pool, const __nv_bfloat16 *x, __nv_bfloat16 *y,
                cudaStream_t stream) {
  cublasLtHandle_t handle;
  void *workspace;
  __nv_bfloat16 *product; // [M, N]
  CHECK(cublasLtCreate(&handle));
  CHECK(cudaMalloc(&workspace, kWorkspace));
  CHECK(cudaMalloc(reinterpret_cast<void **>(&product), size_t{kWideMaxRows} * 65536 * 2));
  for (const Weight &w : kWeights) {
    const size_t bytes = static_cast<size_t>(w.N * w.K) * 2;
    const int count = static_cast<int>(std::min<size_t>(pool / bytes, 30));
    std::printf("%s: a plain read takes %.1f us\n", w.name, static_cast<double>(bytes) / bandwidth / 1e6);
    for (int64_t M : {4, 8, 16, 24, 32, 48, 64, 96, 128}) {
      if (sweep && (M == 4 || M == 24 || M == 48 || M == 96))
        continue;
      const int64_t columns = w.gated ? w.N / 2 : w.N;
      const auto call = [&](int i) {
        return Linear{y, columns, x, w.K, data + i * w.N * w.K, nullptr, M, w.N, w.K, DType::bf16, DType::bf16, DType::bf16};
      };
      if (!wide_linear_applies(call(0), w.gated))
        continue;
      const std::optional<Activation> gate = w.gated ? std::optional(Activation::silu) : std::nullopt;
      const LibraryProduct library(handle, workspace, M, w.N, w.K);
      std::vector<std::unique_ptr<Contender>> contenders;
      const auto enter = [&](std::string name, const std::function<void(int)> &work) {
        contenders.push_back(std::make_unique<Contender>(std::move(name), count, work, stream));
      };
      enter("cuBLASLt", [&](int i) {
        library.run(data + i * w.N * w.K, x, product, stream);
        if (w.gated)
          gated_act({y, columns, product, product + columns, w.N, w.N, M, columns, Activation::silu, DType::bf16}, stream);
      });
      if (M <= (w.gated ? kSkinnyMaxRows : 2 * kSkinnyMaxRows))
        enter("few rows", [&](int i) {
          LinearFusion fusion;
          fusion.gated = w.gated;
          if (w.gated)
            fused_linear(call(i), fusion, stream);
          else
            skinny_linear(call(i), stream);
        });
      const WideShape chosen = choose_wide_shape(M, w.N, w.K, w.gated);
      enter("wide " + name_of(chosen), [&](int i) { wide_linear(call(i), gate, chosen, stream); });
      if (sweep)
        for (const WideShape &s : wide_shapes(w.N, w.K, w.gated))
          enter(name_of(s), [&](int i) { wide_linear(call(i), gate, s, stream); });
      for (int turns = 0; turns < 3; ++turns)
        for (auto &c : contenders)
          c->turn(4);
      std::printf("  M=%-3lld", static_cast<long long>(M));
      for (const auto &c : contenders)
        std::printf("  %s %.2f", c->name.c_str(), c->microseconds());
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  CHECK(cudaFree(product));
  CHECK(cudaFree(workspace));
  CHECK(cublasLtDestroy(handle));
}
