// Behaviour of the tokenizer that goldens cannot show: errors, repair of bad input, bounded time on
// hostile input, use from many threads, and the small queries of the interface.
#include "runtime/support/error.h"
#include "runtime/text/normalize.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/utf8.h"
#include "test/unit/text/golden_file.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

namespace llmrt::text::test {
namespace {

using nlohmann::json;

json fixture(const std::string &name) {
  return json::parse(read_gzip(golden_path(name + ".json.gz")));
}
std::shared_ptr<const Tokenizer> load(const std::string &name) {
  return Tokenizer::from_json(read_gzip(golden_path(name + ".json.gz")));
}

json small() {
  return {{"model",
           {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", json::array({"a b"})}}},
          {"added_tokens", json::array()}};
}

std::string refusal(const json &doc) {
  try {
    Tokenizer::from_json(doc.dump());
  } catch (const Error &e) {
    return e.what();
  }
  return "";
}

TEST(TokenizerErrors, NameTypePathAndWhatIsSupported) {
  EXPECT_EQ(refusal(small()), "");
  auto with = [&](const char *pointer, const json &value) {
    json doc = small();
    doc[json::json_pointer(pointer)] = value;
    return refusal(doc);
  };
  EXPECT_EQ(with("/model/type", "Unigram"),
            "tokenizer.json: model has type \"Unigram\", which is not supported; supported are BPE.");
  EXPECT_NE(with("/model/type", "WordPiece").find("\"WordPiece\""), std::string::npos);
  EXPECT_EQ(with("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Precompiled"}}}}}),
            "tokenizer.json: normalizer.normalizers[0] has type \"Precompiled\", which is not supported; "
            "supported are "
            "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace and Sequence.");
  EXPECT_NE(with("/pre_tokenizer", {{"type", "BertPreTokenizer"}}).find("ByteLevel, Split, Digits"),
            std::string::npos);
  EXPECT_NE(with("/decoder", {{"type", "CTC"}}).find("decoder has type \"CTC\""), std::string::npos);
  EXPECT_NE(with("/post_processor", {{"type", "X"}}).find("post_processor has type \"X\""),
            std::string::npos);
  EXPECT_NE(with("/model/dropout", 0.1).find("model.dropout"), std::string::npos);
  EXPECT_NE(with("/model/merges/0", "a c").find("model.merges[0] uses the token \"c\""), std::string::npos);
  EXPECT_NE(with("/model/merges/0", "a").find("model.merges[0]"), std::string::npos);
  EXPECT_NE(with("/model/merges/0", json::array({"a"})).find("model.merges[0]"), std::string::npos);
  EXPECT_NE(with("/model/vocab/c", -1).find("\"c\""), std::string::npos);
  EXPECT_NE(with("/model/vocab/c", 4000000000u).find("\"c\""), std::string::npos);
  EXPECT_NE(with("/model/unk_token", "<unk>").find("model.unk_token is \"<unk>\""), std::string::npos);
  EXPECT_NE(with("/added_tokens/0", {{"content", "x"}}).find("added_tokens[0] lacks the member \"id\""),
            std::string::npos);
  EXPECT_NE(
      with("/pre_tokenizer",
           {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}, {"invert", false}})
          .find("does not compile"),
      std::string::npos);
  EXPECT_NE(with("/pre_tokenizer", {{"type", "Split"},
                                    {"pattern", {{"Regex", "[a&&b]"}}},
                                    {"behavior", "Isolated"},
                                    {"invert", false}})
                .find("class intersection"),
            std::string::npos);
  json nested{{"type", "NFC"}};
  for (int i = 0; i < 100; ++i)
    nested = {{"type", "Sequence"}, {"normalizers", json::array({nested})}};
  EXPECT_NE(with("/normalizer", nested).find("nests more than 16"), std::string::npos);
  EXPECT_THROW(Tokenizer::from_json("{"), Error);
  EXPECT_THROW(Tokenizer::from_json(""), Error);
  EXPECT_THROW(Tokenizer::from_json("[]"), Error);
  EXPECT_THROW(Tokenizer::from_json(std::string(5000, '[')), Error);
}

TEST(TokenizerErrors, ExpressionsThatPcre2WouldReadDifferently) {
  auto with = [&](const std::string &regex) {
    json doc = small();
    doc["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
    return refusal(doc);
  };
  EXPECT_EQ(with("[a[bc]]|x{1,3}+|\\p{ lu }|[[:digit:]]|\\p{Han}"), "");
  EXPECT_NE(with("[a[^b]]").find("nests a character class"), std::string::npos);
  EXPECT_NE(with("[a-[b]]").find("range that ends with a class"), std::string::npos);
  EXPECT_NE(with("[[a]-b]").find("range that begins with a class"), std::string::npos);
  EXPECT_NE(with("x{2,3}+").find("repeats an interval"), std::string::npos);
  EXPECT_NE(with("\\p{Alpha}").find("the property \"Alpha\", which is not supported"), std::string::npos);
  EXPECT_NE(with("\\p{Script=Han}").find("not supported"), std::string::npos);
  EXPECT_NE(with("[[:punct:]]").find("uses [:punct:], which is not supported"), std::string::npos);
  // A long expression is cut between characters.
  std::string message = with(
      "x{2}+" +
      std::string(3 * 70, 'a')
          .replace(100, 100, "中中中中中中中中中中中中中中中中中中中中中中中中中中中中中中中中中中中中"));
  EXPECT_EQ(repair_utf8(message), message);
  EXPECT_NE(message.find("… repeats"), std::string::npos);
}

TEST(Tokenizer, AnUnknownTokenThatIsNeverNeededMayBeAnAddedOne) {
  json doc = fixture("gpt2");
  std::string plain = "a\u00e9 \U0001F600";
  auto ids = Tokenizer::from_json(doc.dump())->encode(plain, false);
  doc["model"]["unk_token"] = "<|nowhere|>";
  EXPECT_EQ(Tokenizer::from_json(doc.dump())->encode(plain, false), ids);
  doc["model"]["vocab"].erase("\u0100"); // the byte 0
  EXPECT_NE(refusal(doc).find("model.unk_token is \"<|nowhere|>\", which is not in model.vocab"),
            std::string::npos);
}

TEST(TokenizerErrors, TwoPostProcessorsThatAddTokens) {
  json doc = small();
  json bert = {{"type", "BertProcessing"}, {"cls", {"a", 0}}, {"sep", {"b", 1}}};
  json nothing = {{"type", "TemplateProcessing"},
                  {"single", {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}}};
  doc["post_processor"] = {{"type", "Sequence"}, {"processors", {nothing, bert, nothing}}};
  EXPECT_EQ(refusal(doc), "");
  doc["post_processor"]["processors"].push_back(bert);
  EXPECT_NE(refusal(doc).find("post_processor.processors[3] is the second post-processor that adds tokens"),
            std::string::npos);
}

TEST(Tokenizer, SpacesThatOneAddedTokenHasSwallowedAreNotAnother) {
  json doc = small();
  doc["added_tokens"] = {
      {{"id", 3}, {"content", "<s>"}, {"rstrip", true}, {"normalized", false}, {"special", true}},
      {{"id", 4}, {"content", "\n\n"}, {"lstrip", true}, {"normalized", false}, {"special", false}}};
  auto t = Tokenizer::from_json(doc.dump());
  EXPECT_EQ(t->encode("<s>\n\na", false), (std::vector<int32_t>{3, 0}));
  EXPECT_EQ(t->encode("<s>\n\n\n\nab", false), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(t->encode("a\n\n<s>", false), (std::vector<int32_t>{0, 4, 3}));
}

// Ideographs of Unicode 15 and 15.1, which PCRE2 10.42 does not know.
TEST(Tokenizer, HanIsWhatTheTokenizersPackageTakesForIt) {
  json doc = small();
  doc["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"Regex", "\\p{Han}|[^ab\\p{Han}]"}}}, {"content", "a"}};
  auto t = Tokenizer::from_json(doc.dump());
  EXPECT_EQ(t->encode("b\u4E00\U00031350\U0002EBF0b", false), (std::vector<int32_t>{1, 0, 0, 2}));
  doc["normalizer"]["pattern"]["Regex"] = "\\P{Han}";
  t = Tokenizer::from_json(doc.dump());
  EXPECT_EQ(t->encode("b\U00031350c", false), (std::vector<int32_t>{0, 0}));
}

// Letters whose lower case is newer than utf8proc 2.8.
TEST(Tokenizer, LowercaseOfNewLetters) {
  EXPECT_EQ(lowercase("\u1C89A\uA7CB\U00010D50\U00016EA0\u0130"), "\u1C8Aa\u0264\U00010D70\U00016EBBi\u0307");
}

TEST(Tokenizer, RepairsInvalidUtf8LikePython) {
  // b"...".decode(errors="replace")
  EXPECT_EQ(repair_utf8("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(repair_utf8("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(repair_utf8("\xE2\x28\xA1"), "\uFFFD(\uFFFD");
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98\xF0\x9F\x98\x80"), "\uFFFD\U0001F600");
  EXPECT_EQ(repair_utf8("\xC0\xAF\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repair_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  auto t = load("qwen2");
  EXPECT_EQ(t->encode("a\xFFz\xE2\x82", false), t->encode("a\uFFFDz\uFFFD", false));
  EXPECT_EQ(t->decode(t->encode("\xF0\x9F\x98", true), false), "\uFFFD");
}

TEST(Tokenizer, AnswersSmallQueries) {
  auto t = load("llama3");
  int32_t bos = *t->token_to_id("<|begin_of_text|>");
  EXPECT_TRUE(t->is_special(bos));
  EXPECT_FALSE(t->is_special(*t->token_to_id("Ġthe")));
  EXPECT_EQ(t->token_bytes(*t->token_to_id("Ġthe")), " the");
  EXPECT_EQ(t->id_to_token(*t->token_to_id("Ġthe")), "Ġthe");
  EXPECT_EQ(t->token_bytes(*t->token_to_id("Ã")), "\xC3"); // the letter that spells this byte
  EXPECT_EQ(t->vocab_size(), static_cast<size_t>(*t->token_to_id("<|reserved_special_token_19|>")) + 1);
  EXPECT_EQ(t->token_to_id("no such token"), std::nullopt);
  for (int32_t bad : {-1, 1 << 30, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(t->id_to_token(bad), std::nullopt);
    EXPECT_EQ(t->token_bytes(bad), "");
    EXPECT_EQ(t->decode(std::vector<int32_t>{bad, bos, bad}, false), "<|begin_of_text|>");
  }
  auto spm = load("llama2");
  EXPECT_EQ(spm->token_bytes(*spm->token_to_id("<0x0A>")), "\n");
  EXPECT_EQ(spm->token_bytes(*spm->token_to_id("<0xE2>")), "\xE2");
  EXPECT_EQ(spm->token_bytes(*spm->token_to_id("▁the")), " the");
}

// Joined token bytes are the text, whatever the characters: what logit processors and `logprobs` rely on.
TEST(Tokenizer, TokenBytesAddUpToTheText) {
  for (const char *name : {"gpt2", "llama3", "smollm2-small"}) {
    auto t = load(name);
    for (size_t i = 0; i < golden_strings().size(); i += 17) {
      const std::string &s = golden_strings()[i];
      std::string joined;
      for (int32_t id : t->encode(s, false, false))
        joined += t->token_bytes(id);
      EXPECT_EQ(joined, s) << name;
    }
  }
}

TEST(Tokenizer, TakesLongWordsInReasonableTime) {
  // Quadratic behaviour would take hours.
  constexpr size_t kBytes = 1 << 20;
  std::string hostile[] = {
      std::string(kBytes, 'a'), std::string(kBytes, ' '), std::string(kBytes, '\n'), "", "", "", ""};
  while (hostile[3].size() < kBytes)
    hostile[3] += "\u0301\u0323"; // combining marks in the wrong order, without end
  while (hostile[4].size() < kBytes)
    hostile[4] += "漢";
  while (hostile[5].size() < kBytes)
    hostile[5] += "<|im_star";
  while (hostile[6].size() < kBytes)
    hostile[6] += "\xF0\x9F";
  for (const char *name : {"gpt2", "qwen2", "llama3", "smollm2-small", "llama2", "mistral"}) {
    auto t = load(name);
    for (const std::string &text : hostile) {
      auto start = std::chrono::steady_clock::now();
      auto ids = t->encode(text, true);
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20))
          << name << " " << text.substr(0, 4);
      EXPECT_FALSE(ids.empty());
      t->decode(ids, false);
    }
  }
}

TEST(Tokenizer, LongAndShortWordsMergeAlike) {
  // A word merges by scanning up to 48 symbols and by a heap above; both against the slowest method.
  json doc = fixture("gpt2");
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (const auto &m : doc["model"]["merges"]) {
    std::string line = m;
    size_t space = line.find(' ');
    ranks.emplace(std::pair(line.substr(0, space), line.substr(space + 1)), ranks.size());
  }
  auto t = Tokenizer::from_json(doc.dump());
  for (size_t length : {1, 2, 3, 40, 47, 48, 49, 50, 64, 200}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::vector<std::string> parts;
      std::string word;
      for (size_t i = 0; i < length; ++i) {
        parts.emplace_back(1, "etaoinshrdlu"[(seed * 7 + i * i * 3 + i / (seed + 1)) % 12]);
        word += parts.back();
      }
      while (parts.size() > 1) {
        size_t best = SIZE_MAX, at = 0;
        for (size_t i = 0; i + 1 < parts.size(); ++i)
          if (auto it = ranks.find({parts[i], parts[i + 1]}); it != ranks.end() && it->second < best) {
            best = it->second;
            at = i;
          }
        if (best == SIZE_MAX)
          break;
        parts[at] += parts[at + 1];
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
      std::vector<int32_t> expected;
      for (const std::string &p : parts)
        expected.push_back(*t->token_to_id(p));
      EXPECT_EQ(t->encode(word, false), expected) << word;
    }
  }
}

TEST(Tokenizer, IsThreadSafe) {
  auto t = load("qwen3");
  std::vector<std::vector<int32_t>> expected;
  for (size_t i = 0; i < 400; ++i)
    expected.push_back(t->encode(golden_strings()[i * 30], true));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&, k] {
      for (size_t n = 0; n < 400; ++n) {
        size_t i = (n * 7 + static_cast<size_t>(k) * 50) % 400;
        wrong += t->encode(golden_strings()[i * 30], true) != expected[i];
        t->decode(expected[i], true);
      }
    });
  for (auto &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

} // namespace
} // namespace llmrt::text::test
