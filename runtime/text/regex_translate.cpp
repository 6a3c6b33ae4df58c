// Rewrites an Oniguruma (Ruby syntax) pattern for PCRE2. Where the two differ, and what we do:
//   \s        PCRE2 adds U+180E                       -> explicit ranges of White_Space
//   \w        PCRE2 10.42 lacks marks, adds No        -> explicit ranges of Oniguruma's word class
//   \b        over \w, likewise                       -> look-around
//   \v        the one character U+000B                -> \x{0B}
//   [:digit:] different                               -> explicit ranges
//   \p{Gc}    different Unicode versions              -> explicit ranges of the package's version
//   \p{Thai}  PCRE2 means script extensions           -> \p{sc:Thai}; \p{Han} -> explicit ranges
//   \h        hex digit, in PCRE2 horizontal space    -> [0-9A-Fa-f]
//   (?m)      "dot matches newline", PCRE2's (?s)     -> (?s)
//   \uHHHH    unknown to PCRE2                        -> \x{HHHH}
//   ^ and $   always at line borders                  -> compiled with PCRE2_MULTILINE
//   x{1,3}+   a repeated interval, in PCRE2 possessive -> x+ (and x{0,3}+ -> x*); refused for other minima
//   [a[b]]    a union of classes                      -> [ab]
//   [a&&b], [a[^b]]  other class operations           -> refused
#include "runtime/support/error.h"
#include "runtime/text/regex.h"
#include "runtime/text/unicode.h"

#include <cstdio>
#include <optional>

namespace llmrt::text {
namespace {

constexpr size_t kMaxPattern = 16 << 10, kMaxResult = 4 << 20;

constexpr std::pair<std::string_view, std::string_view> kCategories[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"privateuse", "Co"},
    {"surrogate", "Cs"},
    {"unassigned", "Cn"},
    {"digit", "Nd"},
};

// What a property's name stands for, if our tables know it. Case, spaces, '-' and '_' do not count.
std::optional<CodePointRanges> named_set(std::string_view name) {
  std::string plain;
  for (char c : name)
    if (c != ' ' && c != '-' && c != '_')
      plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (plain == "space")
    return ranges_of_space();
  if (plain == "han")
    return ranges_of_han();
  std::string category = plain;
  for (auto [long_name, short_name] : kCategories)
    if (plain == long_name)
      category = short_name;
  if (!category.empty() && category[0] >= 'a' && category.size() <= 2)
    category[0] = static_cast<char>(category[0] - 32);
  CodePointRanges ranges = ranges_of_category(category);
  if (ranges.empty())
    return std::nullopt;
  return ranges;
}

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
    if (has_border_) {
      out_ += "(?(DEFINE)(?<word_>";
      add_set(ranges_of_word(), false, false);
      out_ += "))";
    }
    return std::move(out_);
  }

private:
  std::string shown() const {
    constexpr size_t kShown = 200;
    if (in_.size() <= kShown)
      return std::string(in_);
    size_t border = kShown;
    while (border > 0 && (static_cast<unsigned char>(in_[border]) & 0xC0) == 0x80)
      --border;
    return std::string(in_.substr(0, border)) + "…";
  }

  [[noreturn]] void fail(const std::string &problem) const {
    throw Error("tokenizer.json: the regular expression " + shown() + " " + problem + ".");
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
    case 'v': // in PCRE2 any vertical space
      pos_ += 2;
      out_ += "\\x{0B}";
      return;
    case 'b':
    case 'B':
      pos_ += 2;
      if (in_class)
        out_ += in_.substr(pos_ - 2, 2);
      else
        word_border(c == 'B');
      return;
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

  // \b over Oniguruma's word class, which is written out once, behind the expression.
  void word_border(bool negated) {
    has_border_ = true;
    out_ += negated ? "(?:(?<=(?&word_))(?=(?&word_))|(?<!(?&word_))(?!(?&word_)))"
                    : "(?:(?<=(?&word_))(?!(?&word_))|(?<!(?&word_))(?=(?&word_)))";
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
    pos_ = close + 1;
    if (auto ranges = named_set(name))
      return add_set(std::move(*ranges), negated, in_class);
    if (!pcre2_knows_script(name))
      fail("names the property \"" + std::string(name) +
           "\", which is not supported; supported are general categories, scripts, Digit and Space");
    out_ += negated ? "\\P{sc:" : "\\p{sc:";
    out_ += name;
    out_ += '}';
  }

  // [:digit:] in a class.
  void posix_bracket() {
    size_t close = in_.find(":]", pos_);
    if (close == std::string_view::npos)
      fail("has [: without :]");
    std::string_view name = in_.substr(pos_ + 2, close - pos_ - 2);
    bool negated = name.starts_with('^');
    name.remove_prefix(negated);
    std::optional<CodePointRanges> ranges;
    if (name == "digit" || name == "space")
      ranges = named_set(name);
    else if (name == "xdigit")
      ranges = CodePointRanges{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    if (!ranges)
      fail("uses [:" + std::string(name) +
           ":], which is not supported; supported are [:digit:], [:space:] and [:xdigit:]");
    pos_ = close + 2;
    add_set(std::move(*ranges), negated, true);
  }

  void char_class() {
    out_ += in_[pos_++];
    if (pos_ < in_.size() && in_[pos_] == '^')
      out_ += in_[pos_++];
    if (pos_ < in_.size() && in_[pos_] == ']') { // a leading ] is literal in both
      out_ += "\\]";
      ++pos_;
    }
    int nested = 0; // classes that are open inside of this one
    while (pos_ < in_.size() && (in_[pos_] != ']' || nested > 0)) {
      if (in_[pos_] == ']') {
        --nested;
        ++pos_;
        if (pos_ + 1 < in_.size() && in_[pos_] == '-' && in_[pos_ + 1] != ']')
          fail("has a range that begins with a class, which is not supported; write the class out");
      } else if (in_.substr(pos_, 2) == "&&") {
        fail("uses class intersection (&&), which is not supported; write the class out");
      } else if (in_[pos_] == '[' && in_.substr(pos_, 2) != "[:") {
        if (in_[pos_ - 1] == '-' && in_[pos_ - 2] != '[')
          fail("has a range that ends with a class, which is not supported; write the class out");
        if (in_.substr(pos_, 2) == "[^" || in_.substr(pos_, 2) == "[]" || in_.substr(pos_, 2) == "[-")
          fail("nests a character class that begins with ^, ] or - in another, which is not supported; write "
               "the "
               "class out");
        ++nested;
        ++pos_;
      } else if (in_[pos_] == '[') {
        posix_bracket();
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
    if (close == std::string_view::npos || in_[close] != '}' || close == pos_ + 1 ||
        in_.substr(pos_, close - pos_) == "{,") {
      out_ += "\\{";
      ++pos_;
      return;
    }
    std::string_view body = in_.substr(pos_ + 1, close - pos_ - 1);
    if (close + 1 < in_.size() && in_[close + 1] == '+') {
      std::string_view least = body.substr(0, body.find(','));
      if ((least != "" && least != "0" && least != "1") || body.ends_with(",0") || body == "0")
        fail("repeats an interval with '+', which is supported from 0 or 1 on only; put the interval into a "
             "group");
      out_ += least == "1" ? '+' : '*';
      pos_ = close + 2;
      return;
    }
    out_ += body[0] == ',' ? "{0" : "{"; // {,n} is {0,n}
    out_ += body;
    out_ += '}';
    pos_ = close + 1;
  }

  std::string_view in_;
  size_t pos_ = 0;
  std::string out_;
  bool has_border_ = false;
};

} // namespace

std::string translate_oniguruma(std::string_view pattern) {
  return Translator(pattern).run();
}

} // namespace llmrt::text
