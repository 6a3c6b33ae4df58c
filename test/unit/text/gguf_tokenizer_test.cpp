// The tokenizer.json made from GGUF metadata: equal to the originals of every family, to transformers'
// derivation of merges from scores, and, where the file is at hand, to the real SmolLM2.
#include "runtime/support/error.h"
#include "runtime/text/gguf_tokenizer.h"
#include "test/unit/text/gguf_metadata.h"
#include "test/unit/text/golden_check.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace llmrt::text::test {
namespace {

using nlohmann::json;

// The metadata that a converter would write for a fixture.
GgufTokenizer from_fixture(const json &doc, const std::string &model, const std::string &pre) {
  GgufTokenizer g;
  g.model = model;
  g.pre = pre;
  auto put = [&](const std::string &token, size_t id, int32_t type) {
    if (id >= g.tokens.size()) {
      g.tokens.resize(id + 1);
      g.token_types.resize(id + 1, 1);
    }
    g.tokens[id] = token;
    g.token_types[id] = type;
  };
  for (const auto &[token, id] : doc.at("model").at("vocab").items())
    put(token, id, token.size() == 6 && token.starts_with("<0x") ? 6 : 1);
  for (const auto &token : doc.at("added_tokens"))
    put(token.at("content"), token.at("id"), token.at("special") ? 3 : 4);
  for (const auto &merge : doc.at("model").at("merges"))
    g.merges.push_back(merge.is_string() ? merge.get<std::string>()
                                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  return g;
}

json fixture(const std::string &name) {
  return json::parse(read_gzip(golden_path(name + ".json.gz")));
}

struct FamilyCase {
  const char *fixture, *pre, *bos, *golden = nullptr; // golden: another than the fixture's
};

class GgufFamily : public testing::TestWithParam<FamilyCase> {};

TEST_P(GgufFamily, EqualsOriginal) {
  auto [name, pre, bos, golden] = GetParam();
  GgufTokenizer g = from_fixture(fixture(name), "gpt2", pre);
  if (*bos)
    g.bos_id = static_cast<int32_t>(std::find(g.tokens.begin(), g.tokens.end(), bos) - g.tokens.begin());
  check_golden(gguf_to_tokenizer_json(g), std::string(golden ? golden : name) + ".golden.gz");
}

INSTANTIATE_TEST_SUITE_P(
    Pre, GgufFamily,
    testing::Values(FamilyCase{"gpt2", "gpt-2", ""}, FamilyCase{"smollm2-small", "smollm", ""},
                    FamilyCase{"llama3", "llama-bpe", "<|begin_of_text|>"}, FamilyCase{"qwen2", "qwen2", ""},
                    FamilyCase{"qwen3", "qwen2", ""},
                    FamilyCase{"llama3", "tekken", "<|begin_of_text|>", "variants/pre-tekken"},
                    FamilyCase{"llama3", "smaug-bpe", "", "variants/pre-smaug"},
                    FamilyCase{"qwen2", "seed-coder", "", "variants/pre-seed-coder"},
                    FamilyCase{"qwen2", "deepseek-coder", "", "variants/pre-deepseek-coder"},
                    FamilyCase{"smollm2-small", "minerva-7b", ""}, FamilyCase{"gpt2", "mellum", ""}),
    [](const auto &info) {
      std::string name = std::string(info.param.fixture) + info.param.pre;
      std::erase(name, '-');
      return name;
    });

TEST(GgufSentencePiece, WithMergesEqualsLlama2) {
  GgufTokenizer g = from_fixture(fixture("llama2"), "llama", "");
  g.bos_id = 1;
  g.unk_id = 0;
  g.token_types[0] = 2;
  check_golden(gguf_to_tokenizer_json(g), "llama2.golden.gz");
}

TEST(GgufSentencePiece, MergesDerivedFromScoresEqualTransformers) {
  json spm = fixture("gguf-spm");
  GgufTokenizer g;
  g.model = "llama";
  g.tokens = spm.at("tokens").get<std::vector<std::string>>();
  g.token_types = spm.at("token_types").get<std::vector<int32_t>>();
  g.scores = spm.at("scores").get<std::vector<float>>();
  g.bos_id = 1;
  g.unk_id = 0;
  std::string text = gguf_to_tokenizer_json(g);
  EXPECT_EQ(json::parse(text).at("model").at("merges"), spm.at("merges"));
  check_golden(text, "gguf-spm.golden.gz");
}

TEST(GgufSentencePiece, DerivesMergesOfLargeVocabulariesQuickly) {
  GgufTokenizer g;
  g.model = "llama";
  g.add_bos = false;
  for (char a = 'a'; a <= 'z'; ++a)
    g.tokens.push_back(std::string(1, a));
  for (size_t i = 0; g.tokens.size() < 128000; ++i) // all words of 1, 2, 3 letters, many of 4
    for (char c = 'a'; c <= 'z'; ++c)
      g.tokens.push_back(g.tokens[i] + c);
  g.scores.assign(g.tokens.size(), -1.0f);
  auto start = std::chrono::steady_clock::now();
  gguf_to_tokenizer_json(g);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)); // about 0.3 s unloaded
}

std::string refusal(const GgufTokenizer &g) {
  try {
    gguf_to_tokenizer_json(g);
  } catch (const Error &e) {
    return e.what();
  }
  return "";
}

TEST(GgufErrors, NameTheProblem) {
  GgufTokenizer good;
  good.model = "gpt2";
  good.pre = "smollm";
  good.tokens = {"a", "b", "ab"};
  good.merges = {"a b"};
  EXPECT_EQ(refusal(good), "");
  auto with = [&](auto change) {
    GgufTokenizer g = good;
    change(g);
    return refusal(g);
  };
  EXPECT_EQ(with([](auto &g) { g.model = "t5"; }), "GGUF tokenizer: the model \"t5\" (tokenizer.ggml.model) "
                                                   "is not supported; supported are gpt2 (byte-level "
                                                   "BPE) and llama (SentencePiece BPE).");
  std::string pre = with([](auto &g) { g.pre = "marsian"; });
  EXPECT_NE(pre.find("\"marsian\""), pre.npos);
  for (const std::string &known : supported_gguf_pre_tokenizers())
    EXPECT_NE(pre.find(known), pre.npos) << known;
  EXPECT_NE(with([](auto &g) { g.token_types = {1}; }).find("1 token types for 3 tokens"), std::string::npos);
  EXPECT_NE(with([](auto &g) { g.bos_id = 3; }).find("the bos token id is 3, but ids run from 0 to 2"),
            std::string::npos);
  EXPECT_NE(with([](auto &g) { g.merges = {"a c"}; }).find("merge 0 uses the token \"c\""),
            std::string::npos);
  EXPECT_NE(with([](auto &g) { g.merges = {"ab"}; }).find("merge 0 (\"ab\")"), std::string::npos);
  EXPECT_NE(with([](auto &g) { g.tokens[2] = "a"; }).find("tokens 0 and 2 are both"), std::string::npos);
  EXPECT_NE(with([](auto &g) { g.tokens.push_back("\xFF"); }).find("token 3 is not valid UTF-8"),
            std::string::npos);
  EXPECT_NE(with([](auto &g) { g.add_bos = true; }).find("bos_token_id is missing"), std::string::npos);
  EXPECT_NE(with([](auto &g) { g.tokens.clear(); }).find("tokens is empty"), std::string::npos);
  EXPECT_NE(with([](auto &g) {
              g.model = "llama";
              g.merges.clear();
              g.add_bos = false;
              g.scores = {1.0f};
            }).find("1 scores for 3 tokens"),
            std::string::npos);
}

TEST(SmolLM2, RealVocabularyEqualsGolden) {
  const char *env = std::getenv("LLMC_SMOLLM2_GGUF");
  std::string path = env && *env ? env : LLMC_SMOLLM2_GGUF;
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is missing; run tools/setup.sh or set LLMC_SMOLLM2_GGUF";
  GgufMetadata metadata(path);
  EXPECT_EQ(metadata.tokenizer.tokens.size(), 49152u);
  EXPECT_EQ(metadata.tokenizer.pre, "smollm");
  size_t compared = check_golden(gguf_to_tokenizer_json(metadata.tokenizer), "smollm2.golden.gz");
  EXPECT_GE(compared, 10000u * 7);
}

} // namespace
} // namespace llmrt::text::test
