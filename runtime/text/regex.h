// Regular expressions of a tokenizer.json. They are written for Oniguruma (Ruby syntax); we translate
// them to PCRE2 with every Unicode class spelled out as ranges, so that both engines match the same.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::text {

// One stretch of a text that was searched: a match, or what lies between two matches.
struct Stretch {
  size_t begin, end;
  bool is_match;
};

// The PCRE2 form of an Oniguruma pattern. Throws llmrt::Error on what has no PCRE2 equivalent that is known
// to be equal (class intersection, most POSIX brackets and properties) and on results over 4 MiB.
std::string translate_oniguruma(std::string_view pattern);

bool pcre2_knows_script(std::string_view name); // "Han"

// Thread-safe once built.
class Regex {
public:
  // Throws llmrt::Error if the pattern does not compile.
  explicit Regex(std::string_view oniguruma_pattern);
  ~Regex();
  Regex(const Regex &) = delete;
  Regex &operator=(const Regex &) = delete;

  // Appends stretches that cover `text` (valid UTF-8) completely, in order. Empty matches are reported
  // as Oniguruma's scan does. Throws llmrt::Error when the pattern backtracks beyond all measure.
  void stretches(std::string_view text, std::vector<Stretch> &out) const;

private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

// Either a literal or a regular expression: {"String": …} or {"Regex": …}.
class Pattern {
public:
  static Pattern literal(std::string text);
  static Pattern regex(std::string_view oniguruma_pattern);
  bool is_literal() const { return regex_ == nullptr; }
  const std::string &text() const { return text_; } // of a literal, never empty
  void stretches(std::string_view text, std::vector<Stretch> &out) const;
  // `text` with every match replaced. Throws llmrt::Error if that is longer than 1 GiB.
  // Bytes of a match that begins the text; 0 if there is none.
  size_t match_at_start(std::string_view text) const;
  std::string replace(std::string_view text, std::string_view content) const;

private:
  std::string text_;
  std::shared_ptr<const Regex> regex_;
};

} // namespace llmrt::text
