// Quantised weights: packing keeps every GGUF value, the product matches a double-precision loop over the
// dequantised weight within the rounding bound of its sums, and rows do not depend on the batch.
#include <cmath>
#include <stdexcept>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/linear.h"
#include "test/unit/kernels/support.h"

using namespace llmrt::cpu;
using namespace llmrt::cpu::test;

namespace {

struct Case {
  GgmlType src;
  DType dtype;
};
constexpr Case kCases[] = {
    {GgmlType::Q8_0, DType::q8_0}, {GgmlType::Q4_1, DType::q4_1}, {GgmlType::Q4_0, DType::q4_1}};

struct QuantWeight {
  QuantWeight(Case c, int64_t N, int64_t K, uint32_t seed)
      : c(c), N(N), K(K), row_bytes(ggml_row_bytes(c.src, K)), raw(static_cast<size_t>(N) * row_bytes),
        values(static_cast<size_t>(N * K)), packed(packed_weight_bytes(c.dtype, N, K)) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> d(0, 0.02f);
    for (size_t i = 0; i < raw.size(); i++)
      raw[i] = static_cast<uint8_t>(rng());
    const GgmlBlock b = ggml_block(c.src);
    for (size_t at = 0; at < raw.size(); at += static_cast<size_t>(b.bytes)) {
      const uint16_t scale = f32_to_f16(d(rng)), offset = f32_to_f16(d(rng));
      std::memcpy(&raw[at], &scale, 2);
      if (c.src == GgmlType::Q4_1)
        std::memcpy(&raw[at + 2], &offset, 2);
    }
    dequantize(values.data(), raw.data(), c.src, N * K);
    packed.poison();
    pack_weight_padding(packed.data(), c.dtype, N, K);
    const int64_t cut = N / 3;
    pack(cut, N - cut);
    pack(0, cut);
  }
  void pack(int64_t n0, int64_t rows) {
    pack_quantized_rows(packed.data(), c.dtype, N, K, n0, rows,
                        raw.data() + static_cast<size_t>(n0) * row_bytes, c.src, row_bytes);
  }
  Case c;
  int64_t N, K;
  size_t row_bytes;
  Guarded<uint8_t> raw;
  Guarded<float> values;
  Guarded<uint8_t> packed;
};

class LinearQuantTest : public EachIsa {};

TEST_P(LinearQuantTest, PackingKeepsTheValues) {
  EXPECT_EQ(packed_weight_bytes(DType::q8_0, 17, 64), 2u * 2 * 544);
  EXPECT_EQ(packed_weight_bytes(DType::q4_1, 16, 32), 320u);
  for (Case c : kCases)
    for (int64_t N : {1, 16, 37}) {
      QuantWeight w(c, N, 96, 3);
      Guarded<float> row(96);
      for (int64_t n = 0; n < N; n++) {
        unpack_weight_row(row.data(), w.packed.data(), c.dtype, N, 96, n);
        for (int64_t k = 0; k < 96;
             k++) // Q4_0 as scale * q + offset may round once more than scale * (q - 8)
          ASSERT_NEAR(row[static_cast<size_t>(k)], w.values[static_cast<size_t>(n * 96 + k)],
                      c.src == GgmlType::Q4_0 ? 2e-8 : 0);
      }
    }
}

TEST_P(LinearQuantTest, ColumnsOfASlice) {
  for (Case c : kCases) {
    QuantWeight w(c, 20, 128, 4);
    Guarded<uint8_t> packed(packed_weight_bytes(c.dtype, 20, 64));
    pack_weight_padding(packed.data(), c.dtype, 20, 64);
    pack_quantized_rows(packed.data(), c.dtype, 20, 64, 0, 20, w.raw.data() + ggml_row_bytes(c.src, 32),
                        c.src, w.row_bytes);
    Guarded<float> row(64);
    for (int64_t n = 0; n < 20; n++) {
      unpack_weight_row(row.data(), packed.data(), c.dtype, 20, 64, n);
      for (int64_t k = 0; k < 64; k++)
        ASSERT_NEAR(row[static_cast<size_t>(k)], w.values[static_cast<size_t>(n * 128 + 32 + k)], 2e-8);
    }
  }
}

TEST_P(LinearQuantTest, MatchesDouble) {
  const bool rounds_x = GetParam() == Isa::avx512_bf16;
  struct Shape {
    int64_t N, K;
  };
  for (Shape s : {Shape{1, 32}, {17, 64}, {50, 576}, {160, 96}, {257, 1536}})
    for (Case c : kCases) {
      QuantWeight w(c, s.N, s.K, 5);
      for (int64_t M : {0, 1, 2, 3, 7, 13, 17, 64, 130}) {
        if (M > 20 && s.N > 200)
          continue;
        Team team(1 + static_cast<int>(M % 3));
        const int64_t ldx = s.K + 3, ldy = s.N + 5;
        Guarded<float> x(static_cast<size_t>(M ? (M - 1) * ldx + s.K : 1)), bias(static_cast<size_t>(s.N)),
            y(static_cast<size_t>(M ? (M - 1) * ldy + s.N : 1));
        randomize(x, static_cast<uint32_t>(M + 1));
        randomize(bias, 3);
        y.fill(777.0f);
        linear(team, {.x = x.data(),
                      .ldx = ldx,
                      .w = w.packed.data(),
                      .dtype = c.dtype,
                      .y = y.data(),
                      .ldy = ldy,
                      .M = M,
                      .N = s.N,
                      .K = s.K,
                      .bias = bias.data()});
        for (int64_t m = 0; m < M; m++) {
          std::vector<double> xs;
          for (int64_t k = 0; k < s.K; k++) {
            const float v = x[static_cast<size_t>(m * ldx + k)];
            xs.push_back(rounds_x ? bf16_to_f32(f32_to_bf16(v)) : v);
          }
          for (int64_t n = 0; n < s.N; n++) {
            double sum = bias[static_cast<size_t>(n)], size = std::fabs(sum);
            for (int64_t b = 0; b < s.K; b += 32) { // scale * q and the offset are summed apart: bound both
              double top = 0;
              for (int64_t k = b; k < b + 32; k++)
                top =
                    std::max(top, std::fabs(static_cast<double>(w.values[static_cast<size_t>(n * s.K + k)])));
              for (int64_t k = b; k < b + 32; k++) {
                sum += xs[static_cast<size_t>(k)] * w.values[static_cast<size_t>(n * s.K + k)];
                size += std::fabs(xs[static_cast<size_t>(k)]) * 4 * top;
              }
            }
            ASSERT_NEAR(y[static_cast<size_t>(m * ldy + n)], sum,
                        size * static_cast<double>(34 + s.K / 16) * 0x1p-24)
                << ggml_type_name(c.src) << " M " << M << " N " << s.N << " K " << s.K << " at " << m << ","
                << n;
          }
          for (int64_t n = s.N; m + 1 < M && n < ldy; n++)
            ASSERT_EQ(y[static_cast<size_t>(m * ldy + n)], 777.0f);
        }
      }
    }
}

TEST_P(LinearQuantTest, RowsDoNotDependOnTheBatch) {
  constexpr int64_t kRows = 300;
  struct Shape {
    int64_t N, K;
  };
  for (Shape s : {Shape{96, 576}, {51, 1536}, {260, 96}})
    for (Case c : {kCases[0], kCases[1]}) {
      QuantWeight w(c, s.N, s.K, 11);
      Guarded<float> x(static_cast<size_t>(kRows * s.K)), all(static_cast<size_t>(kRows * s.N)),
          y(static_cast<size_t>(kRows * s.N));
      randomize(x, 12);
      auto run = [&](Team &team, int64_t m0, int64_t M, float *out) {
        linear(team, {.x = x.data() + m0 * s.K,
                      .ldx = s.K,
                      .w = w.packed.data(),
                      .dtype = c.dtype,
                      .y = out,
                      .ldy = s.N,
                      .M = M,
                      .N = s.N,
                      .K = s.K});
      };
      Team one(1), two(2), three(3);
      run(two, 0, kRows, all.data());
      for (int64_t M : {1, 2, 3, 4, 6, 8, 12, 13, 16, 49, 100, 169, 299}) {
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

TEST_P(LinearQuantTest, EmbeddingReadsPackedRows) {
  QuantWeight w(kCases[0], 30, 64, 6);
  const int32_t ids[] = {3, 50, 29};
  Guarded<float> out(3 * 64);
  Team team(1);
  embedding(team, {.out = out.data(),
                   .out_stride = 64,
                   .ids = ids,
                   .T = 3,
                   .H = 64,
                   .table = w.packed.data(),
                   .dtype = DType::q8_0,
                   .packed = true,
                   .begin = 0,
                   .end = 30});
  EXPECT_TRUE(same_bits(out.data(), w.values.data() + 3 * 64, 64));
  EXPECT_EQ(out[64], 0.0f);
  EXPECT_TRUE(same_bits(out.data() + 128, w.values.data() + 29 * 64, 64));
}

TEST_P(LinearQuantTest, RefusesOtherTypesAndUnevenColumns) {
  uint8_t packed[4096] = {}, src[4096] = {};
  EXPECT_THROW(pack_quantized_rows(packed, DType::q8_0, 16, 32, 0, 1, src, GgmlType::Q4_1, 34),
               std::invalid_argument);
  EXPECT_THROW(pack_quantized_rows(packed, DType::bf16, 16, 32, 0, 1, src, GgmlType::Q8_0, 34),
               std::invalid_argument);
  EXPECT_THROW(pack_quantized_rows(packed, DType::q8_0, 16, 48, 0, 1, src, GgmlType::Q8_0, 34),
               std::invalid_argument);
}

INSTANTIATE_EACH_ISA(LinearQuantTest);

} // namespace
