// The "added_tokens" of a tokenizer.json: strings that are cut out of the text before anything else and
// become one token each, such as "<|im_end|>".
#pragma once

#include "runtime/text/json_view.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/token_table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llmrt::text {

struct AddedToken {
  int32_t id = -1;
  std::string content;    // as the user writes it
  std::string normalized; // what is searched in normalised text; equals content unless `is_normalized`
  bool single_word = false, lstrip = false, rstrip = false, is_normalized = false, special = false;
};

// A set of strings, searched leftmost-longest.
class StringMatcher {
public:
  void add(std::string_view key, int32_t value);
  bool empty() const { return nodes_.size() == 1; }
  // The longest key that is a prefix of text[pos…]; -1 if none. `length` is set on success.
  int32_t longest_at(std::string_view text, size_t pos, size_t &length) const;
  // First position from `pos` on where some key may start; text.size() if none.
  size_t next_start(std::string_view text, size_t pos) const;

private:
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> children; // sorted by byte
    int32_t value = -1;
  };
  uint32_t child(uint32_t node, unsigned char byte) const;
  std::vector<Node> nodes_ = std::vector<Node>(1);
  bool starts_[256] = {};
};

class AddedTokens {
public:
  struct Piece {
    size_t begin, end;
    int32_t id; // -1: ordinary text
  };

  // Ids are given as the `tokenizers` package gives them, whatever the entries say: the vocabulary's, else
  // one after the other from its size on.
  static AddedTokens from_json(const JsonView &json, const TokenTable &vocab, const Normalizer &normalizer);

  const std::vector<AddedToken> &tokens() const { return tokens_; }
  bool has_normalized() const { return !in_normalized_.empty(); }

  // Covers `text` with pieces. `parse_special` false: special tokens stay ordinary text.
  void split_raw(std::string_view text, bool parse_special, std::vector<Piece> &out) const {
    split(in_raw_, text, parse_special, out);
  }
  void split_normalized(std::string_view text, bool parse_special, std::vector<Piece> &out) const {
    split(in_normalized_, text, parse_special, out);
  }

private:
  void split(const StringMatcher &matcher, std::string_view text, bool parse_special,
             std::vector<Piece> &out) const;

  std::vector<AddedToken> tokens_;
  StringMatcher in_raw_, in_normalized_; // values are indices into tokens_
};

} // namespace llmrt::text
