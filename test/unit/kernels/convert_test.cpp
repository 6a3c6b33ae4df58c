// Conversions: every 16-bit pattern to f32 against the definition of the format; back by rounding to nearest
// even, checked at every tie, its neighbours, the ends of the range, and NaN.
#include "kernels/cpu/convert.h"

#include <bit>
#include <cmath>

#include "test/unit/kernels/support.h"

using namespace llmrt::cpu;
using namespace llmrt::cpu::test;

namespace {

double f16_value(uint16_t h) {
  const int e = h >> 10 & 31, m = h & 1023;
  const double v = e == 0    ? std::ldexp(m, -24)
                   : e == 31 ? (m ? NAN : INFINITY)
                             : std::ldexp(1024 + m, e - 25);
  return h & 0x8000 ? -v : v;
}
double bf16_value(uint16_t h) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(h) << 16));
}

class ConvertTest : public EachIsa {};

TEST_P(ConvertTest, EveryPatternToF32AndBack) {
  Guarded<uint16_t> all(65536), back(65536);
  Guarded<float> wide(65536);
  for (size_t i = 0; i < 65536; i++)
    all[i] = static_cast<uint16_t>(i);
  for (DType t : {DType::f16, DType::bf16}) {
    to_f32(wide.data(), all.data(), t, 65536);
    from_f32(back.data(), t, wide.data(), 65536);
    for (size_t i = 0; i < 65536; i++) {
      const double want = t == DType::f16 ? f16_value(all[i]) : bf16_value(all[i]);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
        const double again = t == DType::f16 ? f16_value(back[i]) : bf16_value(back[i]);
        ASSERT_TRUE(std::isnan(again)) << i;
        continue;
      }
      ASSERT_EQ(static_cast<double>(wide[i]), want) << i;
      ASSERT_EQ(std::signbit(wide[i]), std::signbit(want)) << i;
      ASSERT_EQ(back[i], all[i]);
    }
  }
}

// Between each value and the next one: just below the middle, the middle (to even), just above it.
TEST_P(ConvertTest, RoundsToNearestEven) {
  for (DType t : {DType::f16, DType::bf16}) {
    const uint16_t inf = t == DType::f16 ? 0x7c00 : 0x7f80;
    Guarded<float> x(3);
    Guarded<uint16_t> got(3);
    for (uint16_t h = 0; h < inf; h++) {
      const double lo = t == DType::f16 ? f16_value(h) : bf16_value(h);
      double hi = t == DType::f16 ? f16_value(h + 1) : bf16_value(h + 1);
      if (h + 1 == inf)
        hi = std::ldexp(1.0, t == DType::f16 ? 16 : 128);
      const double mid = (lo + hi) / 2;
      const float m = static_cast<float>(mid);
      if (static_cast<double>(m) != mid)
        continue; // the middle of bf16's smallest values is no f32
      x[0] = std::nextafter(m, 0.0f);
      x[1] = m;
      x[2] = std::nextafter(m, INFINITY);
      from_f32(got.data(), t, x.data(), 3);
      ASSERT_EQ(got[0], h);
      ASSERT_EQ(got[1], h % 2 == 0 ? h : h + 1);
      ASSERT_EQ(got[2], h + 1);
      for (size_t i = 0; i < 3; i++) // single elements agree
        ASSERT_EQ(t == DType::f16 ? f32_to_f16(-x[i]) : f32_to_bf16(-x[i]), got[i] | 0x8000);
    }
  }
}

TEST_P(ConvertTest, AnyLength) {
  for (int64_t n = 0; n < 40; n++)
    for (DType t : {DType::f32, DType::f16, DType::bf16}) {
      Guarded<float> in(static_cast<size_t>(n)), out(static_cast<size_t>(n));
      Guarded<uint8_t> mid(static_cast<size_t>(n) * dtype_bytes(t));
      for (int64_t i = 0; i < n; i++)
        in[static_cast<size_t>(i)] = static_cast<float>(i) - 7;
      from_f32(mid.data(), t, in.data(), n);
      to_f32(out.data(), mid.data(), t, n);
      ASSERT_TRUE(same_bits(in.data(), out.data(), static_cast<size_t>(n)));
    }
}

INSTANTIATE_EACH_ISA(ConvertTest);

} // namespace
