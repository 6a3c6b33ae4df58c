// Compares one tokenizer with one golden file of test/golden/text: ids with and without special tokens,
// special tokens as plain text, decoding whole and streamed, and random id sequences.
#pragma once

#include "runtime/text/stream_decoder.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/utf8.h"
#include "test/unit/text/golden_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace llmrt::text::test {

using Ids = std::vector<int32_t>;
inline constexpr size_t kShown = 5; // failures reported per tokenizer

inline std::string shown(const Ids &ids) {
  std::string out;
  for (size_t i = 0; i < ids.size() && i < 60; ++i)
    out += std::to_string(ids[i]) + " ";
  return out;
}

struct Checker {
  std::shared_ptr<const Tokenizer> tokenizer;
  size_t failures = 0, compared = 0;

  void same(const std::string &what, const Ids &ours, const Ids &theirs) {
    ++compared;
    if (ours != theirs && failures++ < kShown)
      ADD_FAILURE() << what << "\n  ours:   " << shown(ours) << "\n  theirs: " << shown(theirs);
  }
  void same(const std::string &what, const std::string &ours, const std::string &theirs) {
    ++compared;
    if (ours != theirs && failures++ < kShown)
      ADD_FAILURE() << what << "\n  ours:   " << nlohmann::json(ours).dump(-1, ' ', true)
                    << "\n  theirs: " << nlohmann::json(theirs).dump(-1, ' ', true);
  }
  void decodes(const std::string &what, const Ids &ids, bool skip, const std::string &expected) {
    same(what + " decoded" + (skip ? " without specials" : ""), tokenizer->decode(ids, skip), expected);
    StreamDecoder stream(tokenizer, skip);
    std::string joined;
    for (int32_t id : ids) {
      std::string piece = stream.push(id);
      if (valid_utf8_prefix(piece) != piece.size() && failures++ < kShown)
        ADD_FAILURE() << what << ": a streamed piece breaks a character";
      joined += piece;
    }
    joined += stream.finish();
    same(what + " streamed", joined, expected);
  }
};

// Returns the number of comparisons.
inline size_t check_golden(const std::string &json, const std::string &golden) {
  Checker check{Tokenizer::from_json(json)};
  GoldenReader reader(golden);
  const auto &strings = golden_strings();
  Ids before = reader.ids(), after = reader.ids();
  size_t step = reader.number(), count = reader.number();
  EXPECT_EQ(count, (strings.size() + step - 1) / step);
  for (size_t k = 0; k < count; ++k) {
    const std::string &s = strings.at(k * step);
    std::string name = "string " + std::to_string(k * step) + " " +
                       nlohmann::json(s.substr(0, s.size() > 80 ? 0 : 80)).dump(-1, ' ', true);
    Ids ids = reader.ids();
    check.same(name, check.tokenizer->encode(s, false), ids);
    Ids framed = before;
    framed.insert(framed.end(), ids.begin(), ids.end());
    framed.insert(framed.end(), after.begin(), after.end());
    check.same(name + " with specials", check.tokenizer->encode(s, true), framed);
    Ids literal = reader.number() ? reader.ids() : ids;
    check.same(name + " as plain text", check.tokenizer->encode(s, false, false), literal);
    std::vector<std::string> texts{s};
    for (bool skip : {false, true}) {
      size_t kind = reader.number();
      texts.push_back(kind == 2 ? reader.text() : texts.at(kind));
      check.decodes(name, ids, skip, texts.back());
    }
  }
  size_t sequences = reader.number();
  for (size_t k = 0; k < sequences; ++k) {
    Ids ids = reader.ids();
    std::string name = "ids " + shown(ids);
    check.decodes(name, ids, false, reader.text());
    check.decodes(name, ids, true, reader.text());
  }
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(check.failures, 0u);
  return check.compared;
}

} // namespace llmrt::text::test
