// Text assets: templates in their three places, tokens as strings or objects, and case 19's union of ids.
#include "test/unit/import/support.h"

using namespace llmc;
using namespace llmc::test;

namespace {

using nlohmann::json;

json tokenizer() {
  return {
      {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"</s>", 2}}}, {"merges", json::array()}}},
      {"added_tokens", {{{"id", 3}, {"content", "<|im_end|>"}, {"special", true}}}}};
}

struct Text {
  Folder folder;
  json config = tinyConfig();
  ModelSpec load() {
    folder.write("config.json", config);
    return importModel(folder.path(), LoadFormat::Dummy);
  }
};

// Case 19: lists in generation_config.json only; united with the tokenizer's, none replacing another.
TEST(HfText, Case19UnionOfEosIds) {
  Text text;
  text.config["eos_token_id"] = 5;
  text.folder.write("generation_config.json", json{{"eos_token_id", {9, 5}}, {"bos_token_id", 4}});
  text.folder.write("tokenizer.json", tokenizer());
  text.folder.write("tokenizer_config.json",
                    json{{"eos_token", "<|im_end|>"}, {"bos_token", {{"content", "a"}}}});
  ModelSpec model = text.load();
  EXPECT_EQ(model.text.eosTokenIds, (std::vector<int32_t>{5, 9, 3}));
  EXPECT_EQ(model.text.bosTokenId, 4);
  EXPECT_EQ(model.text.bosToken, "a");
  EXPECT_EQ(model.text.eosToken, "<|im_end|>");
  EXPECT_EQ(model.text.tokenizerJson, tokenizer().dump(2));
}

TEST(HfText, EosFromVocabularyAndSpecialTokensMap) {
  Text text;
  text.folder.write("tokenizer.json", tokenizer());
  text.folder.write("tokenizer_config.json", json{{"eos_token", nullptr}});
  text.folder.write("special_tokens_map.json",
                    json{{"eos_token", {{"content", "</s>"}, {"lstrip", false}}}, {"bos_token", "b"}});
  ModelSpec model = text.load();
  EXPECT_EQ(model.text.eosTokenIds, (std::vector<int32_t>{2}));
  EXPECT_EQ(model.text.bosTokenId, 1);
}

// The tokenizers package and llmrt count added tokens on from the vocabulary's size, whatever the entries
// say.
TEST(HfText, AddedTokensHaveTheIdsThatTheyAreGiven) {
  Text text;
  json holes = tokenizer();
  holes["added_tokens"] = {{{"id", 9}, {"content", "<x>"}},
                           {{"id", 1}, {"content", "b"}},
                           {{"id", 9}, {"content", "<x>"}},
                           {{"id", 7}, {"content", "<|im_end|>"}}};
  text.folder.write("tokenizer.json", holes);
  text.folder.write("tokenizer_config.json", json{{"eos_token", "<|im_end|>"}, {"bos_token", "b"}});
  ModelSpec model = text.load();
  EXPECT_EQ(model.text.eosTokenIds, (std::vector<int32_t>{4}));
  EXPECT_EQ(model.text.bosTokenId, 1);
  EXPECT_TRUE(hasWarning(model, "2 added tokens have other ids than their entries say"));
  EXPECT_TRUE(hasWarning(model, "\"<x>\" has 3, not 9"));
  text.folder.write("tokenizer.json", tokenizer());
  EXPECT_FALSE(hasWarning(text.load(), "other ids"));
}

// transformers adds them to the tokenizer when it loads; here they would be split like any text.
TEST(HfText, TokensThatTheTokenizerLacks) {
  Text text;
  text.folder.write("tokenizer.json", tokenizer());
  text.folder.write(
      "tokenizer_config.json",
      json{{"added_tokens_decoder", {{"3", {{"content", "<|im_end|>"}}}, {"4", {{"content", "<x>"}}}}},
           {"additional_special_tokens", {"<x>", "b", {{"content", "<y>"}}}},
           {"extra_special_tokens", {{"image_token", "<z>"}, {"odd", 3}}}});
  EXPECT_TRUE(hasWarning(
      text.load(),
      "tokenizer.json lacks 3 token(s) that tokenizer_config.json adds (\"<x>\", \"<y>\" and \"<z>\")"));
  text.folder.write("tokenizer_config.json",
                    json{{"added_tokens_decoder", {{"3", {{"content", "<|im_end|>"}}}}},
                         {"additional_special_tokens", nullptr}});
  EXPECT_FALSE(hasWarning(text.load(), "lacks"));
}

TEST(HfText, GenerationDefaults) {
  Text text;
  text.folder.write("generation_config.json", json{{"temperature", 0.7},
                                                   {"top_p", 0.8},
                                                   {"top_k", 20},
                                                   {"repetition_penalty", 1.05},
                                                   {"do_sample", true},
                                                   {"min_p", nullptr}});
  GenerationDefaults defaults = text.load().text.generation;
  EXPECT_EQ(defaults.temperature, 0.7);
  EXPECT_EQ(defaults.topP, 0.8);
  EXPECT_EQ(defaults.topK, 20);
  EXPECT_EQ(defaults.repetitionPenalty, 1.05);
  EXPECT_FALSE(defaults.minP.has_value());
  text.folder.write("generation_config.json", json{{"do_sample", false}, {"temperature", 0.7}});
  EXPECT_EQ(text.load().text.generation.temperature, 0.0);
  text.folder.write("generation_config.json", json{{"temperature", -1}});
  expectError([&] { text.load(); }, {"generation_config.json:2: /temperature"});
  // Outside of what requests may ask for: each request would fail.
  for (const auto &[key, value] : {std::pair{"top_p", 0.0}, {"top_p", 1.5}, {"min_p", 3.0}, {"repetition_penalty", 0.0}}) {
    text.folder.write("generation_config.json", json{{key, value}});
    expectError([&] { text.load(); }, {std::string("generation_config.json:2: /") + key + ": must be ", "take the key out"});
  }
  // Switched off, they do not matter.
  text.folder.write("generation_config.json", json{{"do_sample", false}, {"top_p", 0}, {"top_k", 50}});
  defaults = text.load().text.generation;
  EXPECT_TRUE(defaults.temperature == 0.0 && !defaults.topP && !defaults.topK);
}

TEST(HfText, ChatTemplatePlaces) {
  Text text;
  EXPECT_EQ(text.load().text.chatTemplate, "");
  text.folder.write("chat_template.json", json{{"chat_template", "processor"}});
  EXPECT_EQ(text.load().text.chatTemplate, "processor");
  text.folder.write("tokenizer_config.json", json{{"chat_template", "string"}});
  EXPECT_EQ(text.load().text.chatTemplate, "string");
  text.folder.write("tokenizer_config.json", json{{"chat_template",
                                                   {{{"name", "tool_use"}, {"template", "t"}},
                                                    {{"name", "default"}, {"template", "d"}}}}});
  EXPECT_EQ(text.load().text.chatTemplate, "d");
  text.folder.write("tokenizer_config.json", json{{"chat_template", {{{"name", "rag"}, {"template", "r"}}}}});
  ModelSpec model = text.load();
  EXPECT_EQ(model.text.chatTemplate, "r");
  EXPECT_TRUE(hasWarning(model, "no template named \"default\""));
  text.folder.write("chat_template.jinja", std::string("file"));
  EXPECT_EQ(text.load().text.chatTemplate, "file");
  text.folder.write("tokenizer_config.json", json{{"chat_template", 3}});
  expectError([&] { text.load(); }, {"/chat_template", "expected a template"});
}

TEST(HfText, BrokenFiles) {
  Text text;
  text.folder.write("tokenizer.json", std::string("{\"model\": "));
  expectError([&] { text.load(); }, {"tokenizer.json: not valid JSON"});
  text.folder.write("tokenizer.json", std::string("{\"version\": 1}"));
  expectError([&] { text.load(); }, {"tokenizer.json: no \"model\""});
  text.folder.write("tokenizer.json", "{\"model\":" + std::string(100000, '[') + "}");
  expectError([&] { text.load(); }, {"tokenizer.json: not valid JSON"});
  text.folder.write("tokenizer.json", tokenizer());
  text.folder.write("tokenizer_config.json", json{{"eos_token", "<nowhere>"}});
  EXPECT_TRUE(hasWarning(text.load(), "\"<nowhere>\" is not in the vocabulary"));
  text.folder.write("tokenizer_config.json", json{{"eos_token", 3}});
  expectError([&] { text.load(); }, {"/eos_token", "expected a token"});
  text.folder.write("tokenizer_config.json", std::string("[]"));
  expectError([&] { text.load(); }, {"expected an object"});
}

TEST(HfText, TokenizerBeyondTheEmbedding) {
  Text text;
  json big = tokenizer();
  text.folder.write("tokenizer.json", big);
  EXPECT_FALSE(hasWarning(text.load(), "cannot be served"));
  big["model"]["vocab"]["b"] = 32;
  text.folder.write("tokenizer.json", big);
  EXPECT_TRUE(hasWarning(text.load(), "ids up to 32, the embedding has 32 rows"));
}

TEST(HfText, NoTokenizerIsAWarning) {
  Text text;
  EXPECT_TRUE(hasWarning(text.load(), "no tokenizer.json"));
  text.folder.write("tokenizer.model", std::string("x"));
  EXPECT_TRUE(hasWarning(text.load(), "tokenizer.model"));
}

} // namespace
