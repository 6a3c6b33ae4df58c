// Configs of models that people run, in the spellings of several years: everything that decides a forward pass is what
// transformers makes of them (goldens/make_published_goldens.py).
#include "test/unit/import/support.h"

#include <algorithm>
#include <cstdio>

using namespace llmc;
using namespace llmc::test;

namespace {

using nlohmann::json;

std::string fnv(const std::string &text) {
  uint64_t value = 0xcbf29ce484222325u;
  for (unsigned char c : text)
    value = (value ^ c) * 0x100000001b3u;
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(value));
  return hex;
}

// "name [rows, columns]" of every tensor, sorted, a line each.
std::string shapes(const ModelSpec &model) {
  std::vector<std::string> lines;
  for (const TensorRef &tensor : model.tensors) {
    std::string line = tensor.name + " [";
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      line += (i ? ", " : "") + std::to_string(tensor.shape[i]);
    lines.push_back(line + "]");
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string &line : lines)
    text += (text.empty() ? "" : "\n") + line;
  return text;
}

TEST(Published, AsTransformersReadsThem) {
  json goldens = json::parse(std::ifstream(std::string(LLMC_SOURCE_DIR) + "/test/unit/import/goldens/published.json"));
  size_t count = 0;
  for (const auto &[name, entry] : goldens.items()) {
    if (name == "transformers")
      continue;
    SCOPED_TRACE(name);
    const json &expected = entry["expected"];
    ModelSpec model = importConfig(entry["config"]);
    uint64_t parameters = 0;
    for (const TensorRef &tensor : model.tensors) {
      uint64_t elements = 1;
      for (int64_t dim : tensor.shape)
        elements *= static_cast<uint64_t>(dim);
      parameters += elements;
    }
    EXPECT_EQ(model.tensors.size(), expected["tensors"].get<size_t>());
    EXPECT_EQ(parameters, expected["parameters"].get<uint64_t>());
    EXPECT_EQ(fnv(shapes(model)), expected["shapes"].get<std::string>());
    EXPECT_EQ(model.headDim, expected["head_dim"].get<int64_t>());
    EXPECT_EQ(model.kvHeads, expected["kv_heads"].get<int64_t>());
    EXPECT_DOUBLE_EQ(model.attentionScale, expected["scale"].get<double>());
    EXPECT_DOUBLE_EQ(model.rmsEps, expected["eps"].get<double>());
    std::vector<int64_t> windows;
    for (const AttentionSpec &layer : model.attention)
      windows.push_back(layer.window);
    EXPECT_EQ(windows, expected["windows"].get<std::vector<int64_t>>());
    EXPECT_NEAR(model.rope.attentionFactor, expected["attention_factor"].get<double>(), 1e-12);
    const std::vector<float> &have = model.rope.invFreq;
    const size_t places[] = {0, have.size() / 3, have.size() / 2, have.size() - 1};
    for (size_t i = 0; i < 4; ++i) // torch on another CPU may round powers otherwise by a unit
      EXPECT_NEAR(have[places[i]], expected["inv_freq"][i].get<double>(), 1e-6 * expected["inv_freq"][i].get<double>());
    ++count;
  }
  EXPECT_EQ(count, 37u);
}

} // namespace
