// What the two readers built on nlohmann's event parser share: an iterator that counts lines, and the trimmed
// text of a syntax error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

namespace llmc::detail {

// The line of the last character that is not white space among those that the lexer has taken. The lexer
// looks one character ahead after a number, and that one may be a newline: hence "not white space".
struct LineCounter {
  uint32_t line = 1, lastSolidLine = 1;
};

class LineIterator {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  LineIterator(const char *at, LineCounter *counter) : at_(at), counter_(counter) {}
  reference operator*() const { return *at_; }
  LineIterator &operator++() {
    if (*at_ == '\n')
      ++counter_->line;
    else if (*at_ != ' ' && *at_ != '\t' && *at_ != '\r')
      counter_->lastSolidLine = counter_->line;
    ++at_;
    return *this;
  }
  LineIterator operator++(int) {
    LineIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const LineIterator &other) const { return at_ == other.at_; }
  bool operator!=(const LineIterator &other) const { return at_ != other.at_; }

private:
  const char *at_;
  LineCounter *counter_;
};

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error - x" -> "syntax error - x",
// cut to a length that suits a message.
inline std::string shortSyntaxError(std::string_view what) {
  if (size_t at = what.find("syntax error"); at != std::string_view::npos)
    what.remove_prefix(at);
  else if (size_t bracket = what.find("] "); bracket != std::string_view::npos)
    what.remove_prefix(bracket + 2);
  std::string out;
  for (unsigned char c : what.substr(0, 200)) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "<%02X>", c);
    out += c >= 0x20 && c < 0x7f ? std::string(1, static_cast<char>(c)) : std::string(hex);
  }
  return out;
}

} // namespace llmc::detail
