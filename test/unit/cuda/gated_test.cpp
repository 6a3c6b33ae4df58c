// Gated products of many rows against double precision: in every shape of tiles, of rows, columns and k that
// fill no tile, with biases, all activations, and rows apart.
#include "kernels/cuda/gated_shape.h"
#include "test/unit/cuda/device_data.h"

namespace llmrt::cuda::testing {
namespace {

void check(int64_t M, int64_t columns, int64_t K, DType t, bool bias, Activation kind) {
  SCOPED_TRACE(::testing::Message() << "M " << M << " columns " << columns << " K " << K);
  const int64_t N = 2 * columns, ld_in = K + 8, ld_out = (columns + 15) / 8 * 8;
  Tensor x(M * ld_in, t, 1), w(N * K, t, 2, 1.0f / std::sqrt(float(K))), b(N, DType::f32, 3);
  std::vector<double> want;
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      double gate = bias ? b.host[n] : 0, up = bias ? b.host[columns + n] : 0;
      const float *row = &x.host[m * ld_in], *gates = &w.host[n * K], *ups = &w.host[(columns + n) * K];
      for (int64_t k = 0; k < K; ++k)
        gate += double(row[k]) * gates[k], up += double(row[k]) * ups[k];
      want.push_back(activation(kind, gate) * up);
    }
  for (const GatedShape &shape : gated_shapes())
    for (int stages : {2, shape.stages}) {
      SCOPED_TRACE(::testing::Message() << "tiles of " << shape.rows << " x " << shape.columns
                                        << " in clusters of " << shape.cluster << ", stages " << stages);
      DeviceBytes out(M * ld_out * 2);
      const Linear p = {out.get(),
                        ld_out,
                        x.device.get(),
                        ld_in,
                        w.device.get(),
                        bias ? b.device.as<float>() : nullptr,
                        M,
                        N,
                        K,
                        t,
                        t,
                        t};
      ASSERT_TRUE(gated_linear_applies(p));
      gated_linear(p, kind, {shape.rows, shape.columns, shape.cluster, stages, stages}, nullptr);
      ASSERT_CUDA(cudaGetLastError());
      ASSERT_CUDA(cudaDeviceSynchronize());
      const auto bytes = out.read<unsigned char>();
      const std::vector<float> raw = decode(bytes, t);
      std::vector<float> got;
      for (int64_t m = 0; m < M; ++m)
        got.insert(got.end(), raw.begin() + m * ld_out, raw.begin() + m * ld_out + columns);
      EXPECT_LT(relative_error(got, want), tolerance(t));
      for (int64_t m = 0; m < M; ++m) // columns past the last are others'
        for (int64_t i = columns * 2; i < ld_out * 2; ++i)
          ASSERT_EQ(bytes[m * ld_out * 2 + i], 0xA5) << "row " << m;
    }
}

TEST(GatedLinear, Shapes) {
  if (!hopper())
    GTEST_SKIP() << "gated products of many rows need a GPU of capability 9.x";
  for (int64_t M : {1, 65, 128, 200, 256, 300})
    for (auto [columns, K] : {std::pair<int64_t, int64_t>{72, 64}, {152, 200}, {312, 392}})
      check(M, columns, K, M == 200 ? DType::f16 : DType::bf16, M != 128, Activation::silu);
  check(1000, 152, 328, DType::bf16, false, Activation::silu);
}

// More tiles than multiprocessors, and more rows of tiles than a band has.
TEST(GatedLinear, ManyTiles) {
  if (!hopper())
    GTEST_SKIP() << "gated products of many rows need a GPU of capability 9.x";
  check(80, 20008, 136, DType::bf16, true, Activation::silu);
  check(4100, 1000, 40, DType::f16, false, Activation::silu);
}

TEST(GatedLinear, Activations) {
  if (!hopper())
    GTEST_SKIP() << "gated products of many rows need a GPU of capability 9.x";
  for (Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::gelu})
    for (DType t : {DType::bf16, DType::f16})
      check(130, 200, 1000, t, t == DType::f16, kind);
}

// One product after the other, as programmatic launches have them: each reads what the one before wrote.
TEST(GatedLinear, Chains) {
  if (!hopper())
    GTEST_SKIP() << "gated products of many rows need a GPU of capability 9.x";
  constexpr int64_t M = 256, F = 1024;
  constexpr DType t = DType::bf16;
  Tensor x(M * F, t, 1), w(2 * F * F, t, 2, 2.0f / std::sqrt(float(F)));
  DeviceBytes a(M * F * 2), b(M * F * 2);
  for (const GatedShape &shape : gated_shapes()) {
    const auto product = [&](void *out, const void *in) {
      gated_linear({out, F, in, F, w.device.get(), nullptr, M, 2 * F, F, t, t, t}, Activation::silu, shape,
                   nullptr);
    };
    for (int again = 0; again < 20; ++again)
      product(a.get(), x.device.get()), product(b.get(), a.get()), product(a.get(), b.get()),
          product(b.get(), a.get());
    ASSERT_CUDA(cudaDeviceSynchronize());
    DeviceBytes c(M * F * 2), d(M * F * 2);
    product(c.get(), x.device.get());
    ASSERT_CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 3; ++i) {
      product(i % 2 ? c.get() : d.get(), i % 2 ? d.get() : c.get());
      ASSERT_CUDA(cudaDeviceSynchronize());
    }
    EXPECT_EQ(b.read<uint16_t>(), d.read<uint16_t>());
  }
}

TEST(GatedLinear, AppliesToWhatItCanRead) {
  Linear p{};
  p.M = 256, p.N = 4096, p.K = 4096, p.ld_input = 4096, p.ld_out = 2048;
  p.act = p.weight_type = p.out_type = DType::bf16;
  if (!hopper()) {
    EXPECT_FALSE(gated_linear_applies(p));
    GTEST_SKIP() << "gated products of many rows need a GPU of capability 9.x";
  }
  EXPECT_TRUE(gated_linear_applies(p));
  const auto refused = [&](auto &&change) {
    Linear other = p;
    change(other);
    return !gated_linear_applies(other);
  };
  EXPECT_TRUE(refused([](Linear &l) { l.K = 4092; }));
  EXPECT_TRUE(refused([](Linear &l) { l.N = 4097; }));
  EXPECT_TRUE(refused([](Linear &l) { l.ld_out = 4100; }));
  EXPECT_TRUE(refused([](Linear &l) { l.out_type = DType::f32; }));
  EXPECT_TRUE(refused([](Linear &l) { l.act = l.weight_type = l.out_type = DType::f32; }));
}

} // namespace
} // namespace llmrt::cuda::testing
