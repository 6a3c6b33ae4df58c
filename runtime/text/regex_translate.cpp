// Rewrites an Oniguruma (Ruby syntax) pattern for PCRE2. Where the two differ, and what we do:
//   \s        PCRE2 adds U+180E                       -> explicit ranges of White_Space
//   \w        PCRE2 10.42 lacks marks, adds No        -> explicit ranges of Oniguruma's word class
//   \p{Gc}    different Unicode versions              -> explicit ranges of the `tokenizers` package's
//   version \p{Han}   PCRE2 means script extensions          -> \p{sc:Han} \h        hex digit, in PCRE2
//   horizontal space    -> [0-9A-Fa-f]
//   (?m)      "dot matches newline", PCRE2's (?s)     -> (?s)
//   \uHHHH    unknown to PCRE2                        -> \x{HHHH}
//   ^ and $   always at line borders                  -> compiled with PCRE2_MULTILINE
//   x{1,3}+   a repeated interval, in PCRE2 possessive -> refused
//   [a&&b], [a[b]]  class operations                  -> refused
#include "runtime/support/error.h"
#include "runtime/text/regex.h"
#include "runtime/text/unicode.h"

#include <cstdio>

namespace llmrt::text {
namespace {

constexpr size_t kMaxPattern = 16 << 10, kMaxResult = 4 << 20;

class Translator {
public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    if (in_.size() > kMaxPattern)
      fail("has " + std::to_string(in_.size()) + " bytes, more than the limit of " +
           std::to_string(kMaxPattern));
    while (pos_ < in_.size()) {
      if (in_[pos_] == '\\')
        escape(false);
      else if (in_[pos_] == '[')
        char_class();
      else if (in_.substr(pos_, 2) == "(?")
        group_head();
      else if (in_[pos_] == '{')
        interval();
      else
        out_ += in_[pos_++];
      if (out_.size() > kMaxResult)
        fail("grows beyond " + std::to_string(kMaxResult) + " bytes when its classes are written out");
    }
    return std::move(out_);
  }

private:
  [[noreturn]] void fail(const std::string &problem) const {
    throw Error("tokenizer.json: the regular expression " + std::string(in_.substr(0, 200)) + " " + problem +
                ".");
  }

  void add_ranges(const CodePointRanges &ranges) {
    char buffer[32];
    for (auto [first, last] : ranges) {
      std::snprintf(buffer, sizeof buffer, first == last ? "\\x{%X}" : "\\x{%X}-\\x{%X}", first, last);
      out_ += buffer;
    }
  }

  void add_set(CodePointRanges ranges, bool negated, bool in_class) {
    if (!in_class)
      out_ += negated ? "[^" : "[";
    else if (negated)
      ranges = complement(ranges);
    add_ranges(ranges);
    if (!in_class)
      out_ += ']';
  }

  void escape(bool in_class) {
    if (pos_ + 1 >= in_.size())
      fail("ends with a lone backslash");
    char c = in_[pos_ + 1];
    switch (c) {
    case 's':
    case 'S':
      pos_ += 2;
      return add_set(ranges_of_space(), c == 'S', in_class);
    case 'w':
    case 'W':
      pos_ += 2;
      return add_set(ranges_of_word(), c == 'W', in_class);
    case 'd':
    case 'D':
      pos_ += 2;
      return add_set(ranges_of_category("Nd"), c == 'D', in_class);
    case 'h':
    case 'H':
      pos_ += 2;
      return add_set({{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, c == 'H', in_class);
    case 'p':
    case 'P':
      return property(in_class);
    case 'u': {
      std::string_view hex = in_.substr(pos_ + 2, 4);
      if (hex.size() != 4 || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
        fail("has \\u without four hexadecimal digits");
      out_ += "\\x{";
      out_ += hex;
      out_ += '}';
      pos_ += 6;
      return;
    }
    default:
      out_ += in_.substr(pos_, 2);
      pos_ += 2;
    }
  }

  void property(bool in_class) {
    bool negated = in_[pos_ + 1] == 'P';
    size_t close = in_.find('}', pos_);
    if (pos_ + 2 >= in_.size() || in_[pos_ + 2] != '{' || close == std::string_view::npos)
      fail("has \\p without a name in braces");
    std::string_view name = in_.substr(pos_ + 3, close - pos_ - 3);
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    static constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {
        {"Letter", "L"},      {"Mark", "M"},   {"Number", "N"},
        {"Punctuation", "P"}, {"Symbol", "S"}, {"Separator", "Z"}};
    for (auto [long_name, short_name] : kLongNames)
      if (name == long_name)
        name = short_name;
    CodePointRanges ranges = ranges_of_category(name);
    pos_ = close + 1;
    if (!ranges.empty())
      return add_set(std::move(ranges), negated, in_class);
    out_ += negated ? "\\P{" : "\\p{"; // a script or other property: PCRE2 knows it or refuses it
    if (pcre2_knows_script(name))
      out_ += "sc:";
    out_ += name;
    out_ += '}';
  }

  void char_class() {
    out_ += in_[pos_++];
    if (pos_ < in_.size() && in_[pos_] == '^')
      out_ += in_[pos_++];
    if (pos_ < in_.size() && in_[pos_] == ']') { // a leading ] is literal in both
      out_ += "\\]";
      ++pos_;
    }
    while (pos_ < in_.size() && in_[pos_] != ']') {
      if (in_.substr(pos_, 2) == "&&")
        fail("uses class intersection (&&), which is not supported; write the class out");
      if (in_[pos_] == '[') {
        size_t close = in_.find(":]", pos_);
        if (in_.substr(pos_, 2) != "[:" || close == std::string_view::npos)
          fail("nests one character class in another, which is not supported; write the class out");
        out_ += in_.substr(pos_, close + 2 - pos_);
        pos_ = close + 2;
      } else if (in_[pos_] == '\\') {
        escape(true);
      } else {
        out_ += in_[pos_++];
      }
      if (out_.size() > kMaxResult)
        return; // run() reports it
    }
    if (pos_ >= in_.size())
      fail("has a character class without its closing bracket");
    out_ += in_[pos_++];
  }

  // "(?mi-x:" -> "(?si-x:"; look-around and named groups pass through.
  void group_head() {
    out_ += "(?";
    pos_ += 2;
    size_t end = in_.find_first_not_of("imx-", pos_);
    if (end == std::string_view::npos || (in_[end] != ':' && in_[end] != ')'))
      return;
    for (; pos_ < end; ++pos_)
      out_ += in_[pos_] == 'm' ? 's' : in_[pos_];
  }

  void interval() {
    size_t close = in_.find_first_not_of("0123456789,", pos_ + 1);
    if (close == std::string_view::npos || in_[close] != '}' || close == pos_ + 1) {
      out_ += "\\{";
      ++pos_;
      return;
    }
    if (close + 1 < in_.size() && in_[close + 1] == '+')
      fail("repeats an interval with '+', which is not supported; put the interval into a group");
    std::string_view body = in_.substr(pos_ + 1, close - pos_ - 1);
    out_ += body[0] == ',' ? "{0" : "{"; // {,n} is {0,n}
    out_ += body;
    out_ += '}';
    pos_ = close + 1;
  }

  std::string_view in_;
  size_t pos_ = 0;
  std::string out_;
};

} // namespace

std::string translate_oniguruma(std::string_view pattern) {
  return Translator(pattern).run();
}

} // namespace llmrt::text
