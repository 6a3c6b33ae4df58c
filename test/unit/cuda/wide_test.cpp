// Wide products against double precision: every shape of tiles, whole and shared along k, gates and biases.
#include "kernels/cuda/wide_shape.h"
#include "test/unit/cuda/device_data.h"

namespace llmrt::cuda::testing {
namespace {

void check(int64_t M, int64_t N, int64_t K, DType t, bool bias, std::optional<Activation> gate = {}, std::optional<WideShape> shape = {}) {
  SCOPED_TRACE(::testing::Message() << "M " << M << " N " << N << " K " << K << (gate ? " gated" : "")
                                    << (shape ? " tiles of " + std::to_string(shape->columns) + " / " + std::to_string(shape->splits) : ""));
  const int64_t ld_in = K + 8, columns = gate ? N / 2 : N, ld_out = columns + 8;
  Tensor x(M * ld_in, t, 1), w(N * K, t, 2, 1.0f / std::sqrt(float(K))), b(N, DType::f32, 3);
  DeviceBytes out(M * ld_out * 2);
  const Linear p = {out.get(), ld_out, x.device.get(), ld_in, w.device.get(), bias ? b.device.as<float>() : nullptr, M, N, K, t, t, t};
  ASSERT_TRUE(wide_linear_applies(p, gate.has_value()));
  wide_linear(p, gate, shape ? *shape : choose_wide_shape(M, N, K, gate.has_value()), nullptr);
  ASSERT_CUDA(cudaGetLastError());
  ASSERT_CUDA(cudaDeviceSynchronize());
  const std::vector<float> raw = decode(out.read<unsigned char>(), t);
  std::vector<float> got;
  std::vector<double> want, sums(N);
  for (int64_t m = 0; m < M; ++m) {
    for (int64_t n = 0; n < N; ++n) {
      const float *row = &x.host[m * ld_in], *weight = &w.host[n * K];
      double sum = bias ? b.host[n] : 0;
      for (int64_t k = 0; k < K; ++k)
        sum += double(row[k]) * weight[k];
      sums[n] = sum;
    }
    for (int64_t n = 0; n < columns; ++n) {
      got.push_back(raw[m * ld_out + n]);
      want.push_back(gate ? activation(*gate, float(sums[n])) * sums[columns + n] : sums[n]);
    }
  }
  EXPECT_LT(relative_error(got, want), tolerance(t));
  const auto bytes = out.read<unsigned char>(); // columns past the last are others'
  for (int64_t m = 0; m < M; ++m)
    for (int64_t i = columns * 2; i < ld_out * 2; ++i)
      ASSERT_EQ(bytes[m * ld_out * 2 + i], 0xA5) << "row " << m;
}

TEST(WideLinear, Shapes) {
  if (!hopper())
    GTEST_SKIP() << "wide products need a GPU of capability 9.x";
  for (DType t : {DType::bf16, DType::f16})
    for (int64_t M : {1, 17, 31, 32, 33, 64, 65, 128})
      for (auto [N, K] : {std::pair<int64_t, int64_t>{8, 64}, {128, 4096}, {136, 1000}, {264, 8}, {384, 2048}})
        check(M, N, K, t, M % 2 != 0);
}

TEST(WideLinear, EveryTile) {
  if (!hopper())
    GTEST_SKIP() << "wide products need a GPU of capability 9.x";
  for (bool gated : {false, true})
    for (int64_t K : {1000, 4232}) // 16 k blocks; 67, which no cluster shares evenly and which go round the ring
      for (const WideShape &shape : wide_shapes(400, K, gated))
        for (int64_t M : {5, 64, 100})
          if (M <= (gated ? kWideMaxGatedRows : kWideMaxRows))
            check(M, 400, K, M == 5 ? DType::f16 : DType::bf16, M == 64, gated ? std::optional(Activation::silu) : std::nullopt, shape);
}

// Products that start while the one in front, whose result they read, still runs.
TEST(WideLinear, Chains) {
  if (!hopper())
    GTEST_SKIP() << "wide products need a GPU of capability 9.x";
  constexpr int64_t M = 40, N = 3584;
  constexpr DType t = DType::bf16;
  Tensor x(M * N, t, 1), w(N * N, t, 2, 1.0f / std::sqrt(float(N)));
  DeviceBytes apart(3 * M * N * 2), behind(3 * M * N * 2);
  const auto chain = [&](DeviceBytes &out, bool waits) {
    const void *input = x.device.get();
    for (int i = 0; i < 3; ++i) {
      void *to = out.as<char>() + i * M * N * 2;
      wide_linear({to, N, input, N, w.device.get(), nullptr, M, N, N, t, t, t}, std::nullopt, nullptr);
      if (waits)
        ASSERT_CUDA(cudaDeviceSynchronize());
      input = to;
    }
    ASSERT_CUDA(cudaDeviceSynchronize());
  };
  chain(apart, true);
  const auto want = apart.read<unsigned char>();
  for (int turn = 0; turn < 20; ++turn) {
    chain(behind, false);
    ASSERT_EQ(behind.read<unsigned char>(), want) << "turn " << turn;
  }
}

// More tiles than multiprocessors, the last ones not whole.
TEST(WideLinear, ManyTiles) {
  if (!hopper())
    GTEST_SKIP() << "wide products need a GPU of capability 9.x";
  check(64, 20008, 328, DType::bf16, true);
  check(20, 33032, 64, DType::bf16, false);
  check(40, 4608, 584, DType::bf16, true);
  check(128, 20008, 328, DType::bf16, true);
}

TEST(WideLinear, Gates) {
  if (!hopper())
    GTEST_SKIP() << "wide products need a GPU of capability 9.x";
  for (Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::gelu})
    for (int64_t M : {9, 64})
      for (auto [F, K] : {std::pair<int64_t, int64_t>{8, 64}, {64, 4096}, {200, 1000}, {5000, 200}})
        check(M, 2 * F, K, M == 9 ? DType::f16 : DType::bf16, F != 200, kind);
}

TEST(WideLinear, AppliesToWhatItCanRead) {
  Linear p{};
  p.M = 64, p.N = 4096, p.K = 4096, p.ld_input = 4096, p.ld_out = 4096;
  p.act = p.weight_type = p.out_type = DType::bf16;
  if (!hopper()) {
    EXPECT_FALSE(wide_linear_applies(p, false));
    GTEST_SKIP() << "wide products need a GPU of capability 9.x";
  }
  EXPECT_TRUE(wide_linear_applies(p, true));
  const auto refused = [&](auto &&change, bool gated = false) {
    Linear other = p;
    change(other);
    return !wide_linear_applies(other, gated);
  };
  EXPECT_TRUE(refused([](Linear &l) { l.M = kWideMaxRows + 1; }));
  EXPECT_TRUE(refused([](Linear &l) { l.M = kWideMaxGatedRows + 1; }, true));
  EXPECT_TRUE(refused([](Linear &l) { l.K = 4092; }));
  EXPECT_TRUE(refused([](Linear &l) { l.N = 4100; }));
  EXPECT_TRUE(refused([](Linear &l) { l.N = 4104; }, true));
  EXPECT_TRUE(refused([](Linear &l) { l.ld_out = 4100; }));
  EXPECT_TRUE(refused([](Linear &l) { l.out_type = DType::f32; }));
  EXPECT_TRUE(refused([](Linear &l) { l.act = l.weight_type = l.out_type = DType::f32; }));
}

} // namespace
} // namespace llmrt::cuda::testing
