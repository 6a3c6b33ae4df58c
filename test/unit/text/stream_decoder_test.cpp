// Streaming: characters are held until whole, runs of byte tokens until settled, and a prompt can prime
// the stream. (That streamed text equals decoded text is checked on every golden.)
#include "runtime/text/stream_decoder.h"
#include "test/unit/text/golden_file.h"

#include <gtest/gtest.h>

namespace llmrt::text::test {
namespace {

std::shared_ptr<const Tokenizer> load(const std::string &name) {
  return Tokenizer::from_json(read_gzip(golden_path(name + ".json.gz")));
}

TEST(StreamDecoder, HoldsAnEmojiUntilItIsWhole) {
  auto t = load("gpt2");
  auto ids = t->encode("x🫠y", false);
  ASSERT_GE(ids.size(), 5u); // the emoji is several tokens
  StreamDecoder d(t, true);
  std::vector<std::string> pieces;
  for (int32_t id : ids)
    pieces.push_back(d.push(id));
  EXPECT_EQ(pieces.front(), "x");
  for (size_t i = 1; i + 2 < pieces.size(); ++i)
    EXPECT_EQ(pieces[i], "");
  EXPECT_EQ(pieces[pieces.size() - 2], "🫠");
  EXPECT_EQ(pieces.back(), "y");
  EXPECT_EQ(d.finish(), "");
}

TEST(StreamDecoder, FlushesAnUnfinishedCharacterAtTheEnd) {
  auto t = load("gpt2");
  auto ids = t->encode("🫠", false);
  ids.pop_back();
  StreamDecoder d(t, true);
  for (int32_t id : ids)
    EXPECT_EQ(d.push(id), "");
  EXPECT_EQ(d.finish(), "\uFFFD");
  EXPECT_EQ(d.push(t->encode("a", false).at(0)), "a"); // a new stream
}

TEST(StreamDecoder, SettlesRunsOfByteTokens) {
  auto t = load("llama2");
  auto byte = [&](const char *name) { return *t->token_to_id(name); };
  StreamDecoder d(t, true);
  EXPECT_EQ(d.push(*t->token_to_id("▁the")), "the"); // the very first space goes
  EXPECT_EQ(d.push(*t->token_to_id("▁the")), " the");
  EXPECT_EQ(d.push(byte("<0xF0>")), "");
  EXPECT_EQ(d.push(byte("<0x9F>")), "");
  EXPECT_EQ(d.push(byte("<0x98>")), "");
  EXPECT_EQ(d.push(byte("<0x80>")), "");
  EXPECT_EQ(d.push(*t->token_to_id("▁the")), "😀 the");
  EXPECT_EQ(d.push(byte("<0xF0>")), "");
  EXPECT_EQ(d.push(byte("<0x41>")), "\uFFFD\uFFFD"); // bad for certain: one per byte
  EXPECT_EQ(d.push(byte("<0x42>")), "\uFFFD");       // still the same run
  EXPECT_EQ(d.push(*t->token_to_id("▁the")), " the");
  EXPECT_EQ(d.push(byte("<0xE2>")), "");
  EXPECT_EQ(d.finish(), "\uFFFD");
}

TEST(StreamDecoder, ContinuesAPrompt) {
  auto t = load("llama2");
  auto prompt = t->encode("Say", true);
  auto rest = t->encode("the", false); // "▁the"
  StreamDecoder fresh(t, true), primed(t, true);
  primed.prime(prompt);
  EXPECT_EQ(fresh.push(rest.at(0)), "the");
  EXPECT_EQ(primed.push(rest.at(0)), " the");
}

std::string push_all(StreamDecoder &stream, const std::vector<int32_t> &ids) {
  std::string out;
  for (int32_t id : ids)
    out += stream.push(id);
  return out;
}

// Prompts often end with a line's end, which is a byte token in Llama 2: text of theirs is not the answer's.
TEST(StreamDecoder, NothingOfAPromptComesWithWhatFollows) {
  auto t = load("llama2");
  const auto the = t->encode("the", false).at(0); // "▁the"
  const int32_t newline = *t->token_to_id("<0x0A>"), bad = *t->token_to_id("<0xFF>");
  const auto said = t->encode("Say", true), wave = t->encode("👋", false);
  ASSERT_EQ(*t->id_to_token(wave.back()), "<0x8B>");
  for (const std::vector<int32_t> &end : {std::vector<int32_t>{newline}, {newline, newline}, wave, {bad}, {newline, bad}}) {
    auto prompt = said;
    prompt.insert(prompt.end(), end.begin(), end.end());
    StreamDecoder primed(t, true);
    primed.prime(prompt);
    EXPECT_EQ(primed.push(the), " the");
    EXPECT_EQ(primed.finish(), "");
    primed.prime(prompt);
    EXPECT_EQ(primed.finish(), "");
    // Byte tokens that follow are a run of their own.
    primed.prime(prompt);
    EXPECT_EQ(push_all(primed, {newline, the}), "\n the");
  }
  // A prompt of nothing but bytes is text before the answer all the same.
  StreamDecoder bytes(t, true);
  bytes.prime(std::vector<int32_t>{newline});
  EXPECT_EQ(bytes.push(the), " the");
}

TEST(StreamDecoder, ACharacterThatAPromptBegins) {
  for (const char *name : {"llama2", "qwen2"}) {
    auto t = load(name);
    auto prompt = t->encode("a 👋", false);
    const int32_t last = prompt.back();
    prompt.pop_back();
    StreamDecoder primed(t, true);
    primed.prime(prompt);
    EXPECT_EQ(primed.push(last), name == std::string("llama2") ? "" : "👋") << name; // a byte token may be one of a longer run
    EXPECT_EQ(primed.finish(), name == std::string("llama2") ? "👋" : "") << name;
  }
}

TEST(StreamDecoder, SkipsSpecialTokens) {
  auto t = load("qwen2");
  int32_t end = *t->token_to_id("<|im_end|>");
  StreamDecoder skip(t, true), keep(t, false);
  EXPECT_EQ(skip.push(end), "");
  EXPECT_EQ(keep.push(end), "<|im_end|>");
}

} // namespace
} // namespace llmrt::text::test
