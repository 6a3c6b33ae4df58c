// Skinny products against double precision, over every path: tensor cores of 1, 2 and 4 tiles, f32, plain.
#include "kernels/cuda/linear_shape.h"
#include "test/unit/cuda/device_data.h"

namespace llmrt::cuda::testing {
namespace {

void check(int64_t M, int64_t N, int64_t K, DType act, DType weight, DType out_type, bool bias,
           const LinearShape *shape = nullptr) {
  SCOPED_TRACE(::testing::Message() << "M " << M << " N " << N << " K " << K << " act " << int(act) << " out " << int(out_type));
  const int64_t ld_in = K + 8, ld_out = N + 3;
  Tensor x(M * ld_in, act, 1), w(N * K, weight, 2, 1.0f / std::sqrt(float(K))), b(N, DType::f32, 3);
  DeviceBytes out(M * ld_out * dtype_bytes(out_type));
  const Linear p = {out.get(), ld_out, x.device.get(), ld_in, w.device.get(), bias ? b.device.as<float>() : nullptr, M, N, K,
                    act, weight, out_type};
  shape ? skinny_linear(p, *shape, nullptr) : skinny_linear(p, nullptr);
  ASSERT_CUDA(cudaGetLastError());
  ASSERT_CUDA(cudaDeviceSynchronize());
  std::vector<float> raw = decode(out.read<unsigned char>(), out_type), got;
  std::vector<double> want;
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < N; ++n) {
      double sum = bias ? b.host[n] : 0;
      for (int64_t k = 0; k < K; ++k)
        sum += double(x.host[m * ld_in + k]) * w.host[n * K + k];
      got.push_back(raw[m * ld_out + n]);
      want.push_back(sum);
    }
  EXPECT_LT(relative_error(got, want), tolerance(out_type));
}

TEST(SkinnyLinear, Shapes) {
  for (DType t : {DType::bf16, DType::f16, DType::f32})
    for (int64_t M : {1, 2, 7, 8, 9, 16, 17, 31, 32, 45})
      for (auto [N, K] : {std::pair<int64_t, int64_t>{17, 40}, {960, 576}, {33, 1000}, {50, 1544}})
        check(M, N, K, t, t, M % 2 ? DType::f32 : t, M % 3 != 0);
  check(1, 4608, 3584, DType::bf16, DType::bf16, DType::bf16, true);
  check(5, 3584, 18944, DType::bf16, DType::bf16, DType::bf16, false);
  check(2, 5120, 8192, DType::bf16, DType::bf16, DType::bf16, true);
}

// Every way of cutting up a product gives the same sums: more tiles than blocks, fewer k blocks than warps, clusters.
TEST(SkinnyLinear, Ways) {
  cudaDeviceProp prop;
  ASSERT_CUDA(cudaGetDeviceProperties(&prop, 0));
  for (int row_tiles : {1, 2, 4})
    for (int warps : {2, 4, 8})
      for (int stages : {3, 4})
        for (int splits : {1, 2, 4, 8})
          for (int64_t M : {1, 8, 15, 32}) {
            if (warps * stages * (row_tiles * 16 + M) * 128 > 180 * 1024 || (splits > 1 && prop.major < 9))
              continue;
            const LinearShape shape = {row_tiles, warps, stages, splits};
            SCOPED_TRACE(::testing::Message() << row_tiles << "," << warps << "," << stages << "," << splits);
            check(M, 100, 456, DType::bf16, DType::bf16, DType::f32, true, &shape);
          }
  const LinearShape wide = {1, 8, 4, 1}, full = {2, 8, 4, 1}, split = {4, 4, 3, 4};
  check(1, 30000, 200, DType::bf16, DType::bf16, DType::bf16, true, &wide);
  check(16, 9001, 1096, DType::bf16, DType::bf16, DType::bf16, true, &full);
  check(9, 30011, 200, DType::bf16, DType::bf16, DType::bf16, true, &split);
}

TEST(SkinnyLinear, OddKAndMixedTypes) {
  for (int64_t M : {1, 3, 20}) {
    check(M, 37, 101, DType::bf16, DType::bf16, DType::f32, true); // rows that 16-byte loads do not fit
    check(M, 37, 104, DType::f32, DType::bf16, DType::f32, false);
    check(M, 37, 104, DType::f32, DType::f32, DType::f32, true);
  }
}

// In f32 every row comes out the same to the bit, alone and among any number of others: 16-byte rows and odd ones.
TEST(SkinnyLinear, RowsInF32DoNotDependOnTheirBatch) {
  for (auto [N, K] : {std::pair<int64_t, int64_t>{70, 576}, {5003, 132}, {40, 101}}) {
    constexpr int64_t kMost = 150;
    Tensor x(kMost * K, DType::f32, 4), w(N * K, DType::f32, 5, 1.0f / std::sqrt(float(K)));
    DeviceBytes out(kMost * N * sizeof(float));
    const auto product = [&](int64_t first, int64_t M) {
      const float *rows = x.device.as<float>() + first * K;
      skinny_linear({out.get(), N, rows, K, w.device.get(), nullptr, M, N, K, DType::f32, DType::f32, DType::f32}, nullptr);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      std::vector<float> got = out.read<float>();
      got.resize(M * N);
      return got;
    };
    std::vector<float> alone;
    for (int64_t m = 0; m < kMost; ++m)
      for (float v : product(m, 1))
        alone.push_back(v);
    for (int64_t M : {2, 3, 4, 5, 8, 9, 31, 64, 150})
      EXPECT_EQ(product(0, M), std::vector<float>(alone.begin(), alone.begin() + M * N)) << M << " rows of " << N << " x " << K;
  }
}

} // namespace
} // namespace llmrt::cuda::testing
