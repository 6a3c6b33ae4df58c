// The product against a double-precision loop, within the rounding bound of a K-term sum in f32; and its
// promise that a row's bits depend on nothing but the row and the weight.
#include "kernels/cpu/linear.h"

#include <cmath>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/embedding.h"
#include "test/unit/kernels/support.h"

using namespace llmrt::cpu;
using namespace llmrt::cpu::test;

namespace {

struct Weight {
  Weight(DType dtype, int64_t N, int64_t K, uint32_t seed)
      : dtype(dtype), N(N), K(K), source(static_cast<size_t>(N * K)),
        packed(packed_weight_bytes(dtype, N, K)) {
    randomize(source, seed, 0.5f);
    for (size_t i = 0; i < source.size(); i++)
      values.push_back(dtype == DType::f32    ? source[i]
                       : dtype == DType::bf16 ? bf16_to_f32(f32_to_bf16(source[i]))
                                              : f16_to_f32(f32_to_f16(source[i])));
    packed.poison();
    pack_weight_padding(packed.data(), dtype, N, K);
    // In uneven pieces, last rows first: the loader packs q|k|v like this.
    const int64_t cut = N / 3;
    pack_weight_rows(packed.data(), dtype, N, K, cut, N - cut, source.data() + cut * K, DType::f32, K);
    pack_weight_rows(packed.data(), dtype, N, K, 0, cut, source.data(), DType::f32, K);
  }
  double value(int64_t n, int64_t k) const { return values[static_cast<size_t>(n * K + k)]; } // as stored
  DType dtype;
  int64_t N, K;
  Guarded<float> source;
  std::vector<double> values;
  Guarded<uint8_t> packed;
};

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

class LinearTest : public EachIsa {};

TEST_P(LinearTest, PackedBytes) {
  EXPECT_EQ(packed_weight_bytes(DType::f32, 17, 5), 32u * 5 * 4);
  EXPECT_EQ(packed_weight_bytes(DType::bf16, 17, 5), 32u * 6 * 2);
  EXPECT_EQ(packed_weight_bytes(DType::f16, 16, 4), 16u * 4 * 2);
}

TEST_P(LinearTest, UnpackGivesBackTheRow) {
  for (DType t : kTypes)
    for (int64_t K : {1, 2, 7, 64, 333}) {
      Weight w(t, 37, K, 5);
      Guarded<float> row(static_cast<size_t>(K));
      for (int64_t n = 0; n < 37; n++) {
        unpack_weight_row(row.data(), w.packed.data(), t, 37, K, n);
        for (int64_t k = 0; k < K; k++)
          ASSERT_EQ(row[static_cast<size_t>(k)], static_cast<float>(w.value(n, k))) << n << "," << k;
      }
    }
}

TEST_P(LinearTest, PackingFromSixteenBitSourcesKeepsTheBits) {
  constexpr int64_t N = 19, K = 35, ld = 41;
  for (DType t : {DType::bf16, DType::f16}) {
    Guarded<uint16_t> src(static_cast<size_t>((N - 1) * ld + K));
    for (size_t i = 0; i < src.size(); i++)
      src[i] = static_cast<uint16_t>(i * 37 % 0x7000);
    Guarded<uint8_t> packed(packed_weight_bytes(t, N, K));
    pack_weight_padding(packed.data(), t, N, K);
    pack_weight_rows(packed.data(), t, N, K, 0, N, src.data(), t, ld);
    float row[K];
    for (int64_t n = 0; n < N; n++) {
      unpack_weight_row(row, packed.data(), t, N, K, n);
      for (int64_t k = 0; k < K; k++) {
        const uint16_t h = src[static_cast<size_t>(n * ld + k)];
        ASSERT_EQ(row[k], t == DType::bf16 ? bf16_to_f32(h) : f16_to_f32(h));
      }
    }
  }
}

TEST_P(LinearTest, MatchesDouble) {
  const bool rounds_x = GetParam() == Isa::avx512_bf16;
  struct Shape {
    int64_t N, K;
  };
  for (Shape s : {Shape{1, 1}, {16, 16}, {17, 31}, {33, 65}, {50, 127}, {160, 96}, {257, 530}, {48, 1537}})
    for (DType t : kTypes) {
      Weight w(t, s.N, s.K, static_cast<uint32_t>(s.N * 7 + s.K));
      for (int64_t M : {0, 1, 2, 3, 7, 13, 15, 17, 29, 64, 200}) {
        if (M == 200 && s.N != 50)
          continue;
        for (int threads = 1; threads <= 3; threads++) {
          if (threads != 1 && M != 1 && M != 17)
            continue;
          Team team(threads);
          const int64_t ldx = s.K + 3, ldy = s.N + 5;
          Guarded<float> x(static_cast<size_t>(M ? (M - 1) * ldx + s.K : 1));
          Guarded<float> y(static_cast<size_t>(M ? (M - 1) * ldy + s.N : 1));
          Guarded<float> bias(static_cast<size_t>(s.N));
          randomize(x, static_cast<uint32_t>(M + 1));
          randomize(bias, 3);
          y.fill(777.0f);
          std::vector<double> xs; // as the product reads it
          for (int64_t m = 0; m < M; m++)
            for (int64_t k = 0; k < s.K; k++) {
              const float v = x[static_cast<size_t>(m * ldx + k)];
              xs.push_back(rounds_x && t == DType::bf16 ? bf16_to_f32(f32_to_bf16(v)) : v);
            }
          linear(team, {.x = x.data(),
                        .ldx = ldx,
                        .w = w.packed.data(),
                        .dtype = t,
                        .y = y.data(),
                        .ldy = ldy,
                        .M = M,
                        .N = s.N,
                        .K = s.K,
                        .bias = bias.data()});
          for (int64_t m = 0; m < M; m++)
            for (int64_t n = 0; n < s.N; n++) {
              double sum = bias[static_cast<size_t>(n)], size = std::fabs(sum);
              for (int64_t k = 0; k < s.K; k++) {
                const double term = xs[static_cast<size_t>(m * s.K + k)] * w.value(n, k);
                sum += term;
                size += std::fabs(term);
              }
              ASSERT_NEAR(y[static_cast<size_t>(m * ldy + n)], sum,
                          size * static_cast<double>(s.K + 2) * 0x1p-24)
                  << "M " << M << " N " << s.N << " K " << s.K << " at " << m << "," << n;
            }
          for (int64_t m = 0; m + 1 < M; m++) // between the rows nothing is written
            for (int64_t n = s.N; n < ldy; n++)
              ASSERT_EQ(y[static_cast<size_t>(m * ldy + n)], 777.0f);
        }
      }
    }
}

TEST_P(LinearTest, AddsResidualInPlace) {
  constexpr int64_t M = 5, N = 21, K = 40;
  Team team(2);
  Weight w(DType::f32, N, K, 1);
  Guarded<float> x(M * K), plain(M * N), y(M * N), add(M * N);
  randomize(x, 2);
  randomize(add, 4);
  Linear p{.x = x.data(),
           .ldx = K,
           .w = w.packed.data(),
           .dtype = DType::f32,
           .y = plain.data(),
           .ldy = N,
           .M = M,
           .N = N,
           .K = K};
  linear(team, p);
  std::memcpy(y.data(), add.data(), M * N * 4);
  p.y = y.data();
  p.add = y.data();
  p.ld_add = N;
  linear(team, p);
  for (size_t i = 0; i < M * N; i++)
    ASSERT_EQ(y[i], plain[i] + add[i]);
}

// The contract of the header: the row alone, in any batch, with any team: the same bits.
TEST_P(LinearTest, RowsDoNotDependOnTheBatch) {
  constexpr int64_t kRows = 400;
  struct Shape {
    int64_t N, K;
  };
  for (Shape s : {Shape{96, 576}, {51, 1537}, {260, 95}})
    for (DType t : kTypes) {
      Weight w(t, s.N, s.K, 11);
      Guarded<float> x(static_cast<size_t>(kRows * s.K)), all(static_cast<size_t>(kRows * s.N)),
          y(static_cast<size_t>(kRows * s.N));
      randomize(x, 12);
      auto run = [&](Team &team, int64_t m0, int64_t M, float *out) {
        linear(team, {.x = x.data() + m0 * s.K,
                      .ldx = s.K,
                      .w = w.packed.data(),
                      .dtype = t,
                      .y = out,
                      .ldy = s.N,
                      .M = M,
                      .N = s.N,
                      .K = s.K});
      };
      Team one(1), two(2), three(3);
      run(two, 0, kRows, all.data());
      for (int64_t M : {1, 2, 3, 4, 5, 6, 8, 11, 14, 15, 16, 31, 100, 169, 399}) {
        Team &team = M % 3 == 0 ? three : M % 3 == 1 ? one : two;
        for (int64_t m0 = M % 5; m0 + M <= kRows; m0 += M < 16 ? 97 : M) {
          y.poison();
          run(team, m0, M, y.data());
          ASSERT_TRUE(same_bits(y.data(), all.data() + m0 * s.N, static_cast<size_t>(M * s.N)))
              << "M " << M << " from row " << m0 << " N " << s.N << " K " << s.K;
        }
      }
    }
}

TEST_P(LinearTest, ScratchStaysWithinTheStatedBytes) {
  for (int64_t M : {1, 16, 600}) {
    Team team(2);
    Weight w(DType::f32, 40, 100, 1);
    Guarded<float> x(static_cast<size_t>(M * 100)), y(static_cast<size_t>(M * 40));
    randomize(x, 1);
    linear(team, {.x = x.data(),
                  .ldx = 100,
                  .w = w.packed.data(),
                  .dtype = DType::f32,
                  .y = y.data(),
                  .ldy = 40,
                  .M = M,
                  .N = 40,
                  .K = 100});
    EXPECT_LE(team.scratch_bytes(), linear_scratch_bytes(2, M, 100) + 63);
  }
}

TEST_P(LinearTest, Embedding) {
  constexpr int64_t V = 45, H = 37, begin = 100, ld = 40;
  const int32_t ids[] = {100, 144, 99, 145, 120, -1, 120};
  constexpr int64_t T = 7;
  for (DType t : kTypes) {
    Weight w(t, V, H, 9);
    Guarded<uint8_t> rows(static_cast<size_t>(V * H) * dtype_bytes(t));
    from_f32(rows.data(), t, w.source.data(), V * H);
    for (bool packed : {false, true})
      for (float scale : {1.0f, 3.0f})
        for (int threads : {1, 2}) {
          Team team(threads);
          Guarded<float> out((T - 1) * ld + H);
          out.poison();
          embedding(team, {.out = out.data(),
                           .out_stride = ld,
                           .ids = ids,
                           .T = T,
                           .H = H,
                           .table = packed ? static_cast<const void *>(w.packed.data()) : rows.data(),
                           .dtype = t,
                           .packed = packed,
                           .begin = begin,
                           .end = begin + V,
                           .scale = scale});
          for (int64_t i = 0; i < T; i++)
            for (int64_t h = 0; h < H; h++) {
              const bool own = ids[i] >= begin && ids[i] < begin + V;
              const float want = own ? static_cast<float>(w.value(ids[i] - begin, h)) * scale : 0.0f;
              ASSERT_EQ(out[static_cast<size_t>(i * ld + h)], want);
            }
        }
  }
}

INSTANTIATE_EACH_ISA(LinearTest);

} // namespace
