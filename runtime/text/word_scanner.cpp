// The two families, alternative by alternative in the order of their expressions.
//   GPT-2:     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   tiktoken:  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,k}| ?[^\s\p{L}\p{N}]+[\r\n]*
//              |\s*[\r\n]+|\s+(?!\S)|\s+           (Llama 3: k = 3; Qwen 2 and 3: k = 1)
#include "runtime/text/word_scanner.h"

#include "runtime/text/utf8.h"

#include <string>

namespace llmrt::text {
namespace {

bool is_newline(char c) {
  return c == '\n' || c == '\r';
}

struct Cursor {
  std::string_view text;
  const CharClass *classes;

  CharClass class_at(size_t pos) const { // pos < text.size()
    return classes[next_code_point(text, pos)];
  }
  size_t skip(size_t pos, CharClass wanted) const {
    while (pos < text.size()) {
      size_t next = pos;
      if (classes[next_code_point(text, next)] != wanted)
        break;
      pos = next;
    }
    return pos;
  }
  // \s+(?!\S)|\s+ on a run [pos, run_end): all of it at the end of the text, else all but its last
  // character, or that one alone.
  size_t space_end(size_t pos, size_t run_end) const {
    if (run_end == text.size())
      return run_end;
    size_t last = previous_border(text, run_end);
    return last > pos ? last : run_end;
  }
};

// Length of a contraction at `pos`, where text[pos] is an apostrophe; 0 if there is none. Ignoring case,
// U+017F (long s) counts as s, as it does in Unicode case folding.
size_t contraction(std::string_view text, size_t pos, bool ignore_case) {
  auto letter = [&](size_t i) -> char {
    if (i >= text.size())
      return 0;
    char c = text[i];
    return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  switch (letter(pos + 1)) {
  case 's':
  case 't':
  case 'm':
  case 'd':
    return 2;
  case 'r':
  case 'v':
    return letter(pos + 2) == 'e' ? 3 : 0;
  case 'l':
    return letter(pos + 2) == 'l' ? 3 : 0;
  default:
    return ignore_case && text.substr(pos + 1, 2) == "\xC5\xBF" ? 3 : 0;
  }
}

} // namespace

WordScanner::WordScanner(Family family, int max_digits)
    : family_(family), max_digits_(max_digits), classes_(code_point_classes()) {}

WordScanner WordScanner::gpt2() {
  return {Family::kGpt2, 0};
}

std::optional<WordScanner> WordScanner::for_pattern(std::string_view pattern) {
  constexpr std::string_view kGpt2Tail = R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  for (std::string_view head : {"'s|'t|'re|'ve|'m|'ll|'d", "'(?:[sdmt]|ll|ve|re)"})
    if (pattern == std::string(head) + std::string(kGpt2Tail))
      return gpt2();
  constexpr std::string_view kHead = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  constexpr std::string_view kTail = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::pair<std::string_view, int> kNumbers[] = {
      {R"(\p{N})", 1}, {R"(\p{N}{1,3})", 3}, {R"(\p{N}+)", 0}};
  for (auto [numbers, max_digits] : kNumbers)
    if (pattern == std::string(kHead) + std::string(numbers) + std::string(kTail))
      return WordScanner(Family::kTiktoken, max_digits);
  return std::nullopt;
}

size_t WordScanner::word_end(std::string_view text, size_t pos) const {
  return family_ == Family::kGpt2 ? gpt2_end(text, pos) : tiktoken_end(text, pos);
}

size_t WordScanner::gpt2_end(std::string_view text, size_t pos) const {
  Cursor cursor{text, classes_};
  if (text[pos] == '\'')
    if (size_t length = contraction(text, pos, false))
      return pos + length;
  size_t body = pos + (text[pos] == ' ');
  if (body < text.size()) {
    size_t next = body;
    CharClass c = classes_[next_code_point(text, next)];
    if (c != CharClass::kSpace)
      return cursor.skip(next, c);
  }
  return cursor.space_end(pos, cursor.skip(pos, CharClass::kSpace));
}

size_t WordScanner::tiktoken_end(std::string_view text, size_t pos) const {
  Cursor cursor{text, classes_};
  if (text[pos] == '\'')
    if (size_t length = contraction(text, pos, true))
      return pos + length;
  size_t next = pos;
  CharClass c = classes_[next_code_point(text, next)];
  if (c == CharClass::kLetter)
    return cursor.skip(next, CharClass::kLetter);
  if (c == CharClass::kNumber) {
    if (max_digits_ == 0)
      return cursor.skip(next, CharClass::kNumber);
    for (int n = 1; n < max_digits_ && next < text.size() && cursor.class_at(next) == CharClass::kNumber; ++n)
      next_code_point(text, next);
    return next;
  }
  if (!is_newline(text[pos]) && next < text.size() && cursor.class_at(next) == CharClass::kLetter)
    return cursor.skip(next, CharClass::kLetter);
  size_t body = pos + (text[pos] == ' ');
  if (body < text.size() && cursor.class_at(body) == CharClass::kOther) {
    size_t end = cursor.skip(body, CharClass::kOther);
    while (end < text.size() && is_newline(text[end]))
      ++end;
    return end;
  }
  size_t run_end = cursor.skip(pos, CharClass::kSpace);
  for (size_t end = run_end; end > pos; --end) // newlines are ASCII, so bytes will do
    if (is_newline(text[end - 1]))
      return end;
  return cursor.space_end(pos, run_end);
}

} // namespace llmrt::text
