// Rotary frequencies against transformers' own, bit for bit where its pow() is exact; and hand-checked rules.
#include "compiler/import/rope.h"

#include "test/unit/import/support.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

int32_t ulps(float a, float b) {
  int32_t x, y;
  std::memcpy(&x, &a, 4);
  std::memcpy(&y, &b, 4);
  return std::abs(x - y);
}

TEST(Rope, EqualsTransformers) {
  std::ifstream in(std::string(LLMC_SOURCE_DIR) + "/test/unit/import/goldens/rope.json");
  nlohmann::json goldens = nlohmann::json::parse(in);
  ASSERT_GE(goldens["cases"].size(), 20u);
  size_t total = 0, exact = 0;
  for (const auto &golden : goldens["cases"]) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    ModelSpec model = importConfig(golden["config"]);
    const auto &bits = golden["inv_freq_bits"];
    ASSERT_EQ(model.rope.invFreq.size(), bits.size());
    // The ramps of llama3 and yarn subtract nearly equal numbers, which enlarges an error of pow().
    const int32_t allowed = model.rope.scaling == "llama3" || model.rope.scaling == "yarn" ? 4 : 1;
    for (size_t i = 0; i < bits.size(); ++i) {
      int32_t raw = bits[i];
      float expected;
      std::memcpy(&expected, &raw, 4);
      EXPECT_LE(ulps(model.rope.invFreq[i], expected), allowed) << i;
      ++total;
      exact += model.rope.invFreq[i] == expected;
    }
    EXPECT_DOUBLE_EQ(model.rope.attentionFactor, golden["attention_factor"].get<double>());
  }
  EXPECT_GE(static_cast<double>(exact), 0.98 * static_cast<double>(total)) << exact << " of " << total;
  RecordProperty("exact", std::to_string(exact) + " of " + std::to_string(total));
}

TEST(Rope, Llama3KeepsShortAndDividesLongWavelengths) {
  RopeSpec plain, scaled;
  plain.rotaryDim = scaled.rotaryDim = 128;
  plain.theta = scaled.theta = 500000;
  fillRope(plain, {});
  RopeScaling llama3;
  llama3.kind = RopeScaling::Kind::Llama3;
  llama3.factor = 8;
  llama3.originalMaxPositions = 8192;
  fillRope(scaled, llama3);
  EXPECT_EQ(scaled.scaling, "llama3");
  size_t kept = 0, divided = 0, between = 0;
  for (size_t i = 0; i < 64; ++i) {
    double wavelength = 2 * M_PI / plain.invFreq[i];
    if (wavelength < 8192.0 / 4)
      kept += plain.invFreq[i] == scaled.invFreq[i];
    else if (wavelength > 8192)
      divided += plain.invFreq[i] / 8 == scaled.invFreq[i];
    else
      between += scaled.invFreq[i] < plain.invFreq[i] && scaled.invFreq[i] > plain.invFreq[i] / 8;
  }
  EXPECT_EQ(kept + divided + between, 64u);
  EXPECT_GT(between, 0u);
}

} // namespace
