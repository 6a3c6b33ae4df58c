// Gated products of many rows: kernels/cuda/gated.cu beside cuBLASLt's first choice and the activation's
// kernel. Graphs over distinct weights are replayed for so long that the device's power limit acts, by turns,
// so that it acts on both alike.
#include "test/bench/bench_gated.h"
#include "test/bench/products.h"

#include "kernels/cuda/gated_shape.h"
#include "kernels/cuda/rows.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using namespace llmrt::bench;
using namespace llmrt::cuda;

namespace {

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
