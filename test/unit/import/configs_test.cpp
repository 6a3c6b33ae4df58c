// The shape table: every dense model's parameters and KV bytes to the last digit, every MoE one refused.
#include "test/unit/import/support.h"

using namespace llmc;
using namespace llmc::test;

namespace {

const std::string kConfigs = std::string(LLMC_SOURCE_DIR) + "/test/golden/configs";

TEST(Configs, TotalsEqualTheTable) {
  nlohmann::json oracle = nlohmann::json::parse(std::ifstream(kConfigs + "/oracle.json"));
  size_t dense = 0, refused = 0;
  for (const auto &[name, expected] : oracle.items()) {
    SCOPED_TRACE(name);
    const std::string folder = kConfigs + "/" + name;
    if (expected.contains("unsupported")) {
      expectError([&] { importModel(folder, LoadFormat::Dummy); },
                  {expected["unsupported"],
                   "nearest supported model_type is \"" + expected["nearest"].get<std::string>() + "\""});
      ++refused;
      continue;
    }
    ModelSpec model = importModel(folder, LoadFormat::Dummy);
    EXPECT_EQ(parameterCount(model), expected["parameters"].get<uint64_t>());
    EXPECT_EQ(kvBytesPerToken(model, 2), expected["kv_bytes_per_token"].get<uint64_t>());
    EXPECT_EQ(model.storedDtype, DType::BF16);
    EXPECT_EQ(model.source, "dummy");
    EXPECT_TRUE(model.files.empty());
    for (const TensorRef &tensor : model.tensors)
      EXPECT_EQ(tensor.file, -1);
    // No published config asks for a window: Qwen's sliding_window stands beside use_sliding_window = false.
    for (const AttentionSpec &layer : model.attention)
      EXPECT_EQ(layer.window, 0);
    ++dense;
  }
  EXPECT_EQ(dense, 13u);
  EXPECT_EQ(refused, 3u);
}

TEST(Configs, DummyIsDeterministic) {
  ModelSpec a = importModel(kConfigs + "/Qwen2.5-7B", LoadFormat::Dummy);
  ModelSpec b = importModel(kConfigs + "/Qwen2.5-7B", LoadFormat::Dummy);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i)
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
  EXPECT_EQ(a.configHash, b.configHash);
  EXPECT_EQ(a.configHash.size(), 16u);
}

} // namespace
