// GGUF dequantisation, bit for bit against the values that the `gguf` Python package reads from the same
// bytes (test/golden/dequant, made by make.py there).
#include "kernels/cpu/dequant.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "test/unit/kernels/support.h"

using namespace llmrt::cpu;
using namespace llmrt::cpu::test;

namespace {

std::vector<char> read_golden(const std::string &name) {
  std::ifstream f(std::string(LLMC_SOURCE_DIR) + "/test/golden/dequant/" + name, std::ios::binary);
  EXPECT_TRUE(f.good()) << name;
  return {std::istreambuf_iterator<char>(f), {}};
}

class DequantTest : public ::testing::TestWithParam<GgmlType> {};

TEST_P(DequantTest, EqualsTheGgufPackage) {
  const std::string name = ggml_type_name(GetParam());
  const std::vector<char> in = read_golden(name + ".in"), out = read_golden(name + ".out");
  const int64_t n = static_cast<int64_t>(out.size() / 4);
  ASSERT_GT(n, 0);
  ASSERT_EQ(ggml_row_bytes(GetParam(), n), in.size());
  Guarded<char> bytes(in.size() + 0);
  std::memcpy(bytes.data(), in.data(), in.size());
  Guarded<float> got(static_cast<size_t>(n));
  got.poison();
  dequantize(got.data(), bytes.data(), GetParam(), n);
  const float *want = reinterpret_cast<const float *>(out.data());
  for (int64_t i = 0; i < n; i++)
    ASSERT_EQ(got[static_cast<size_t>(i)], want[i]) << name << " element " << i;
}

INSTANTIATE_TEST_SUITE_P(Types, DequantTest,
                         ::testing::Values(GgmlType::F16, GgmlType::BF16, GgmlType::Q4_0, GgmlType::Q4_1,
                                           GgmlType::Q5_0, GgmlType::Q5_1, GgmlType::Q8_0, GgmlType::Q4_K,
                                           GgmlType::Q5_K, GgmlType::Q6_K),
                         [](const auto &info) { return std::string(ggml_type_name(info.param)); });

TEST(Dequant, RefusesWhatItDoesNotKnow) {
  float out[32];
  const char in[64] = {};
  EXPECT_THROW(dequantize(out, in, static_cast<GgmlType>(99), 32), std::invalid_argument);
  EXPECT_THROW(dequantize(out, in, GgmlType::Q4_0, 31), std::invalid_argument);
  EXPECT_EQ(ggml_block(static_cast<GgmlType>(99)).bytes, 0);
  EXPECT_EQ(ggml_row_bytes(static_cast<GgmlType>(99), 32), 0u);
}

} // namespace
