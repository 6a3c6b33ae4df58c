// The lexer follows Jinja's rules exactly, since every blank counts in a prompt: one trailing newline of the template
// is dropped, a newline after a block is trimmed, blanks before a block on its own line are stripped, and `-`/`+` in
// a tag override both.
#include "runtime/text/jinja/lexer.h"

#include "runtime/text/jinja/chat_template.h"
#include "runtime/text/jinja/unicode.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace llmrt::text::jinja {

namespace {

constexpr size_t kMaxTokens = 200'000;

class Lexer {
public:
  explicit Lexer(const std::string &source) : source_(normalize(source)), s_(source_) {}

  std::vector<Token> run() {
    while (at_ < s_.size())
      root();
    push(TokenKind::end, {});
    return std::move(tokens_);
  }

private:
  // Newlines become \n, and one at the very end goes away.
  static std::string normalize(const std::string &source) {
    std::string out;
    out.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\r') {
        out += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n')
          ++i;
      } else {
        out += source[i];
      }
    }
    if (!out.empty() && out.back() == '\n')
      out.pop_back();
    return out;
  }

  [[noreturn]] void error(const std::string &message) const { throw TemplateError(message, line_); }

  void push(TokenKind kind, std::string text) {
    if (tokens_.size() >= kMaxTokens)
      error("the template has more than " + std::to_string(kMaxTokens) + " tokens");
    tokens_.push_back({kind, line_, std::move(text)});
  }

  bool starts(size_t at, std::string_view what) const { return s_.compare(at, what.size(), what) == 0; }

  // Moves to `end`, counting lines, and remembers whether a line starts there.
  void advance(size_t end) {
    for (size_t i = at_; i < end; ++i)
      line_ += s_[i] == '\n';
    if (end > at_)
      line_starting_ = s_[end - 1] == '\n';
    at_ = end;
  }

  size_t skip_spaces(size_t at) const {
    while (at < s_.size()) {
      size_t next = at;
      if (!is_space(next_code_point(s_, next)))
        break;
      at = next;
    }
    return at;
  }

  // `{% raw %}` at `at`: the offset past it, or npos.
  size_t match_raw_begin(size_t at, std::string_view word, bool trims_newline) const {
    if (!starts(at, "{%"))
      return std::string::npos;
    at += 2;
    if (at < s_.size() && (s_[at] == '-' || s_[at] == '+'))
      ++at;
    at = skip_spaces(at);
    if (!starts(at, word))
      return std::string::npos;
    at = skip_spaces(at + word.size());
    if (starts(at, "-%}"))
      return skip_spaces(at + 3);
    if (trims_newline && starts(at, "+%}"))
      return at + 3;
    if (!starts(at, "%}"))
      return std::string::npos;
    at += 2;
    return trims_newline && at < s_.size() && s_[at] == '\n' ? at + 1 : at;
  }

  // Emits the text before a tag at `tag`, shortened as the tag's sign and lstrip_blocks ask.
  void emit_data(size_t tag, char sign, bool is_variable) {
    std::string_view text = s_.substr(at_, tag - at_);
    if (sign == '-') {
      text = strip(text, Side::right);
    } else if (sign != '+' && !is_variable) {
      size_t line_begin = text.rfind('\n') + 1; // 0 where there is none
      if (line_begin > 0 || line_starting_) {
        std::string_view last = text.substr(line_begin);
        if (!last.empty() && strip(last, Side::both).empty())
          text = text.substr(0, line_begin);
      }
    }
    if (!text.empty())
      push(TokenKind::data, std::string(text));
  }

  // Literal text up to the next tag, then that tag.
  void root() {
    size_t tag = at_;
    while (true) {
      tag = s_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= s_.size()) {
        push(TokenKind::data, std::string(s_.substr(at_)));
        advance(s_.size());
        return;
      }
      if (s_[tag + 1] == '{' || s_[tag + 1] == '%' || s_[tag + 1] == '#')
        break;
      ++tag;
    }
    char type = s_[tag + 1];
    char sign = tag + 2 < s_.size() && (s_[tag + 2] == '-' || s_[tag + 2] == '+') ? s_[tag + 2] : '\0';
    size_t raw_end = type == '%' ? match_raw_begin(tag, "raw", false) : std::string::npos;
    emit_data(tag, sign, type == '{');
    if (raw_end != std::string::npos) {
      advance(raw_end);
      raw();
      return;
    }
    advance(tag);
    if (type != '#')
      push(type == '{' ? TokenKind::variable_begin : TokenKind::block_begin, {});
    advance(tag + 2 + (sign ? 1 : 0));
    if (type == '#')
      comment();
    else
      inside(type == '{');
  }

  void raw() {
    if (at_ >= s_.size())
      return; // nothing follows: Jinja takes that for closed
    for (size_t tag = at_; (tag = s_.find("{%", tag)) != std::string::npos; ++tag) {
      size_t end = match_raw_begin(tag, "endraw", true);
      if (end == std::string::npos)
        continue;
      char sign = s_[tag + 2] == '-' || s_[tag + 2] == '+' ? s_[tag + 2] : '\0';
      emit_data(tag, sign, false);
      advance(end);
      return;
    }
    error("missing end of raw directive");
  }

  void comment() {
    size_t end = s_.find("#}", at_);
    if (at_ >= s_.size())
      return;
    if (end == std::string::npos)
      error("missing end of comment tag");
    char sign = end > at_ ? s_[end - 1] : '\0';
    size_t after = end + 2;
    if (sign == '-')
      after = skip_spaces(after);
    else if (sign != '+' && after < s_.size() && s_[after] == '\n')
      ++after;
    advance(after);
  }

  // Tokens up to the end of a tag. Closing marks count only outside of brackets.
  void inside(bool is_variable) {
    std::string open;
    while (true) {
      if (at_ >= s_.size())
        return; // the parser reports the unexpected end
      if (open.empty() && close_tag(is_variable))
        return;
      size_t spaces = skip_spaces(at_);
      if (spaces > at_) {
        advance(spaces);
        continue;
      }
      char c = s_[at_];
      if (c >= '0' && c <= '9')
        number();
      else if (c == '\'' || c == '"')
        quoted(c);
      else if (!name())
        symbol(open);
    }
  }

  bool close_tag(bool is_variable) {
    std::string_view mark = is_variable ? "}}" : "%}";
    size_t end;
    if (s_[at_] == '-' && starts(at_ + 1, mark))
      end = skip_spaces(at_ + 3);
    else if (!is_variable && s_[at_] == '+' && starts(at_ + 1, mark))
      end = at_ + 3;
    else if (starts(at_, mark)) {
      end = at_ + 2;
      if (!is_variable && end < s_.size() && s_[end] == '\n')
        ++end;
    } else
      return false;
    push(is_variable ? TokenKind::variable_end : TokenKind::block_end, {});
    advance(end);
    return true;
  }

  bool name() {
    size_t end = at_;
    while (end < s_.size()) {
      size_t next = end;
      char32_t c = next_code_point(s_, next);
      if (!(end == at_ ? is_identifier_start(c) : is_identifier_part(c)))
        break;
      end = next;
    }
    if (end == at_)
      return false;
    push(TokenKind::name, std::string(s_.substr(at_, end - at_)));
    advance(end);
    return true;
  }

  static bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

  // Digits with single underscores between them: the offset past them, or `at` if there are none.
  size_t digits(size_t at) const {
    if (at >= s_.size() || !is_digit_char(s_[at]))
      return at;
    ++at;
    while (at < s_.size()) {
      if (is_digit_char(s_[at]))
        ++at;
      else if (s_[at] == '_' && at + 1 < s_.size() && is_digit_char(s_[at + 1]))
        at += 2;
      else
        break;
    }
    return at;
  }

  void number() {
    size_t whole = digits(at_), end = whole;
    bool after_dot = at_ > 0 && s_[at_ - 1] == '.';
    if (!after_dot) {
      if (end + 1 < s_.size() && s_[end] == '.' && is_digit_char(s_[end + 1]))
        end = digits(end + 1);
      if (end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
        size_t exponent = end + 1;
        if (exponent < s_.size() && (s_[exponent] == '+' || s_[exponent] == '-'))
          ++exponent;
        if (size_t after = digits(exponent); after > exponent)
          end = after;
      }
    }
    if (end > whole) {
      std::string text = without_underscores(s_.substr(at_, end - at_));
      push(TokenKind::floating, {});
      tokens_.back().floating = std::strtod(text.c_str(), nullptr);
      advance(end);
      return;
    }
    integer();
  }

  static std::string without_underscores(std::string_view text) {
    std::string out;
    for (char c : text)
      if (c != '_')
        out += c;
    return out;
  }

  static int digit_value(char c) {
    if (is_digit_char(c))
      return c - '0';
    if (c >= 'a' && c <= 'f')
      return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
      return c - 'A' + 10;
    return 99;
  }

  void integer() {
    int base = 10;
    size_t end = at_;
    if (s_[at_] == '0' && at_ + 1 < s_.size()) {
      char mark = static_cast<char>(s_[at_ + 1] | 0x20);
      int candidate = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
      size_t first = at_ + 2 + (at_ + 2 < s_.size() && s_[at_ + 2] == '_' ? 1 : 0);
      if (candidate != 10 && first < s_.size() && digit_value(s_[first]) < candidate) {
        base = candidate;
        end = first;
      }
    }
    Int value = 0;
    bool only_zeros = base == 10 && s_[at_] == '0';
    while (end < s_.size()) {
      size_t digit = s_[end] == '_' && end > at_ ? end + 1 : end;
      if (digit >= s_.size() || digit_value(s_[digit]) >= base || (only_zeros && s_[digit] != '0'))
        break;
      if (__builtin_mul_overflow(value, static_cast<Int>(base), &value) ||
          __builtin_add_overflow(value, static_cast<Int>(digit_value(s_[digit])), &value))
        error("an integer literal has more than 127 bits");
      end = digit + 1;
    }
    push(TokenKind::integer, {});
    tokens_.back().integer = value;
    advance(end);
  }

  void quoted(char quote) {
    size_t end = at_ + 1;
    while (end < s_.size() && s_[end] != quote)
      end += s_[end] == '\\' ? 2 : 1;
    if (end >= s_.size())
      error(std::string("unexpected char ") + (quote == '"' ? "'\"'" : "\"'\"") + ": the string has no end");
    push(TokenKind::string, unescape(s_.substr(at_ + 1, end - at_ - 1)));
    advance(end + 1);
  }

  // Python's unicode-escape codec. Non-ASCII text passes through it as \x, \u and \U escapes, which matters only
  // right after a backslash: there the backslash stays and the escape becomes literal text.
  std::string unescape(std::string_view s) const {
    std::string out;
    for (size_t i = 0; i < s.size();) {
      if (s[i] != '\\') {
        out += s[i++];
        continue;
      }
      if (++i >= s.size())
        error("\\ at end of string");
      char c = s[i];
      if (static_cast<unsigned char>(c) >= 0x80) {
        char32_t code = next_code_point(s, i);
        char buffer[16];
        std::snprintf(buffer, sizeof buffer, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x",
                      static_cast<unsigned>(code));
        out += buffer;
        continue;
      }
      ++i;
      switch (c) {
      case '\n':
        break;
      case '\\':
      case '\'':
      case '"':
        out += c;
        break;
      case 'a':
        out += '\a';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'v':
        out += '\v';
        break;
      case 'x':
        append_code_point(out, hex(s, i, 2, "\\xXX"));
        break;
      case 'u':
      case 'U': {
        char32_t code = hex(s, i, c == 'u' ? 4 : 8, c == 'u' ? "\\uXXXX" : "\\UXXXXXXXX");
        if (code > 0x10ffff)
          error("illegal Unicode character in a \\U escape");
        if (code >= 0xd800 && code < 0xe000)
          error("a \\u escape names a surrogate, which no UTF-8 prompt can hold");
        append_code_point(out, code);
        break;
      }
      case 'N':
        error("\\N{...} escapes are not supported; write \\uXXXX instead");
      default:
        if (c >= '0' && c <= '7') {
          char32_t code = static_cast<char32_t>(c - '0');
          for (int k = 0; k < 2 && i < s.size() && s[i] >= '0' && s[i] <= '7'; ++k)
            code = code * 8 + static_cast<char32_t>(s[i++] - '0');
          append_code_point(out, code);
        } else {
          out += '\\';
          out += c;
        }
      }
    }
    return out;
  }

  char32_t hex(std::string_view s, size_t &i, int width, const char *form) const {
    char32_t code = 0;
    for (int k = 0; k < width; ++k, ++i) {
      if (i >= s.size() || digit_value(s[i]) > 15)
        error(std::string("truncated ") + form + " escape");
      code = code * 16 + static_cast<char32_t>(digit_value(s[i]));
    }
    return code;
  }

  void symbol(std::string &open) {
    static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*",
                                                      "%",  "~",  "[",  "]",  "(",  ")",  "{", "}", ">", "<",
                                                      "=",  ".",  ":",  "|",  ",",  ";"};
    for (std::string_view op : kOperators) {
      if (!starts(at_, op))
        continue;
      char c = op[0];
      if (c == '(' || c == '[' || c == '{') {
        open += c == '(' ? ')' : c == '[' ? ']' : '}';
      } else if (c == ')' || c == ']' || c == '}') {
        if (open.empty())
          error(std::string("unexpected '") + c + "'");
        if (open.back() != c)
          error(std::string("unexpected '") + c + "', expected '" + open.back() + "'");
        open.pop_back();
      }
      push(TokenKind::op, std::string(op));
      advance(at_ + op.size());
      return;
    }
    size_t next = at_;
    next_code_point(s_, next);
    error("unexpected char " + repr(Value::string(std::string(s_.substr(at_, next - at_)))));
  }

  std::string source_;
  std::string_view s_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

} // namespace

std::vector<Token> tokenize(const std::string &source) {
  if (size_t bad = find_invalid_utf8(source); bad != std::string::npos)
    throw TemplateError("the template is not valid UTF-8 at byte " + std::to_string(bad), 0);
  return Lexer(source).run();
}

} // namespace llmrt::text::jinja
