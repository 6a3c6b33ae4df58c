// Hand-written equivalents of the splitting expressions that most byte-level models use; they run at
// hundreds of MB/s where a backtracking engine needs a microsecond per word. Every character of a text
// belongs to some word, so a scan yields only borders.
#pragma once

#include "runtime/text/unicode.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace llmrt::text {

class WordScanner {
public:
  // The scanner for exactly this Oniguruma pattern, if it is one of the known ones.
  static std::optional<WordScanner> for_pattern(std::string_view pattern);
  // The expression built into the ByteLevel pre-tokenizer (use_regex).
  static WordScanner gpt2();

  // End of the word that starts at `pos` (< text.size()); text is valid UTF-8.
  size_t word_end(std::string_view text, size_t pos) const;

private:
  enum class Family { kGpt2, kTiktoken };
  WordScanner(Family family, int max_digits);
  size_t gpt2_end(std::string_view text, size_t pos) const;
  size_t tiktoken_end(std::string_view text, size_t pos) const;

  Family family_;
  int max_digits_; // of one number; 0: no limit. Only kTiktoken.
  const CharClass *classes_;
};

} // namespace llmrt::text
