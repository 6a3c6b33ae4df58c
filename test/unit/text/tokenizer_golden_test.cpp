// Every fixture tokenizer, and variants of them, against what the `tokenizers` package answered.
#include "test/unit/text/golden_check.h"

#include <algorithm>
#include <fstream>
#include <map>

namespace llmrt::text::test {
namespace {

class Golden : public testing::TestWithParam<const char *> {};

TEST_P(Golden, EqualsTokenizersPackage) {
  std::string name = GetParam();
  EXPECT_GE(golden_strings().size(), 10000u);
  size_t compared = check_golden(read_gzip(golden_path(name + ".json.gz")), name + ".golden.gz");
  EXPECT_GE(compared, 10000u * 7);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Values("gpt2", "smollm2-small", "llama3", "qwen2", "qwen3", "llama2",
                                         "mistral"),
                         [](const auto &info) {
                           std::string name = info.param;
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

// Applies the changes of variants.json as make_tokenizers.py does.
nlohmann::json variant_document(const nlohmann::json &entry) {
  static std::map<std::string, nlohmann::json> bases;
  std::string base = entry.at("base");
  if (!bases.contains(base))
    bases[base] = nlohmann::json::parse(read_gzip(golden_path(base + ".json.gz")));
  nlohmann::json doc = bases[base];
  for (const auto &[key, value] : entry.at("changes").items()) {
    if (key == "model") {
      doc["model"].update(value);
    } else if (key == "-vocab") {
      for (const auto &token : value)
        doc["model"]["vocab"].erase(token.get<std::string>());
    } else if (key == "+added_tokens") {
      nlohmann::json kept = nlohmann::json::array();
      for (const auto &old : doc["added_tokens"])
        if (std::none_of(value.begin(), value.end(),
                         [&](const auto &t) { return t.at("content") == old.at("content"); }))
          kept.push_back(old);
      for (const auto &token : value)
        kept.push_back(token);
      doc["added_tokens"] = kept;
    } else {
      doc[key] = value;
    }
  }
  return doc;
}

TEST(TokenizerVariants, EqualTokenizersPackage) {
  std::ifstream in(golden_path("variants.json"));
  nlohmann::json table = nlohmann::json::parse(in).at("variants");
  EXPECT_GE(table.size(), 60u);
  for (const auto &[name, entry] : table.items()) {
    SCOPED_TRACE(name);
    try {
      check_golden(variant_document(entry).dump(), "variants/" + name + ".golden.gz");
    } catch (const std::exception &e) {
      ADD_FAILURE() << e.what();
    }
  }
}

} // namespace
} // namespace llmrt::text::test
