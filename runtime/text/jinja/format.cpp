// printf-style and brace formatting (see format.h), with the subset of the format language that makes text.
#include "runtime/text/jinja/format.h"

#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/unicode.h"

#include <cmath>
#include <cstdio>

namespace llmrt::text::jinja {

namespace {

constexpr int64_t kMaxWidth = 1'000'000;

struct Spec {
  std::string fill = " ";
  char align = 0; // < > ^ =
  char sign = '-';
  bool alternate = false;
  bool comma = false, underscore = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

std::string padded(const std::string &body, const Spec &spec, char default_align, size_t sign_length) {
  auto length = static_cast<int64_t>(count_code_points(body));
  if (spec.width <= length)
    return body;
  int64_t missing = spec.width - length;
  switch (spec.align ? spec.align : default_align) {
  case '<':
    return body + repeat(spec.fill, missing);
  case '^':
    return repeat(spec.fill, missing / 2) + body + repeat(spec.fill, missing - missing / 2);
  case '=':
    return body.substr(0, sign_length) + repeat(spec.fill, missing) + body.substr(sign_length);
  default:
    return repeat(spec.fill, missing) + body;
  }
}

std::string digits_in_base(Int value, unsigned base, bool upper) {
  auto u = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string out;
  do {
    auto digit = static_cast<unsigned>(u % base);
    out += static_cast<char>(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + digit - 10);
    u /= base;
  } while (u);
  return {out.rbegin(), out.rend()};
}

void group_digits(std::string &digits, char separator) {
  size_t end = digits.find_first_not_of("0123456789");
  for (auto at = static_cast<ptrdiff_t>(end == std::string::npos ? digits.size() : end) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, separator);
}

std::string sign_text(bool is_negative, char mode) {
  return is_negative ? "-" : mode == '+' ? "+" : mode == ' ' ? " " : "";
}

std::string float_digits(double magnitude, const Spec &spec) {
  if (!std::isfinite(magnitude)) {
    bool upper = spec.type == 'F' || spec.type == 'E' || spec.type == 'G';
    return std::isnan(magnitude) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf";
  }
  if (spec.type == 0 && spec.precision < 0)
    return repr_float(magnitude);
  double value = spec.type == '%' ? magnitude * 100 : magnitude;
  char type = spec.type == '%' ? 'f' : spec.type == 0 || spec.type == 'n' ? 'g' : spec.type;
  const char form[] = {'%', spec.alternate ? '#' : '.', spec.alternate ? '.' : '*', spec.alternate ? '*' : type,
                       spec.alternate ? type : '\0', '\0'};
  int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  int n = std::snprintf(nullptr, 0, form, precision, value);
  std::string out(static_cast<size_t>(n) + 1, '\0');
  std::snprintf(out.data(), out.size(), form, precision, value);
  out.pop_back();
  // A float without a type keeps a decimal point.
  if (spec.type == 0 && out.find_first_of(".e") == std::string::npos)
    out += ".0";
  if (spec.type == '%')
    out += '%';
  return out;
}

std::string format_number(const Value &value, Spec spec) {
  std::string body, prefix;
  bool is_negative;
  if (value.is(Kind::floating) || (spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos)) {
    double d = value.as_double();
    is_negative = std::signbit(d) && !std::isnan(d);
    body = float_digits(std::fabs(d), spec);
  } else {
    if (spec.precision >= 0)
      fail("Precision not allowed in integer format specifier");
    Int i = value.as_int();
    is_negative = i < 0;
    switch (spec.type) {
    case 0:
    case 'd':
    case 'n':
      body = digits_in_base(i, 10, false);
      break;
    case 'b':
      body = digits_in_base(i, 2, false);
      prefix = "0b";
      break;
    case 'o':
      body = digits_in_base(i, 8, false);
      prefix = "0o";
      break;
    case 'x':
    case 'X':
      body = digits_in_base(i, 16, spec.type == 'X');
      prefix = spec.type == 'X' ? "0X" : "0x";
      break;
    case 'c':
      if (i < 0 || i > 0x10ffff || (i >= 0xd800 && i < 0xe000))
        fail("%c arg not in range(0x110000)");
      append_code_point(body, static_cast<char32_t>(i));
      return padded(body, spec, '<', 0);
    default:
      fail(std::string("Unknown format code '") + spec.type + "' for object of type 'int'");
    }
    if (!spec.alternate)
      prefix.clear();
  }
  if (spec.comma || spec.underscore)
    group_digits(body, spec.comma ? ',' : '_');
  std::string sign = sign_text(is_negative, spec.sign) + prefix;
  return padded(sign + body, spec, '>', sign.size());
}

int64_t read_number(const std::string &s, size_t &at) {
  int64_t n = 0;
  while (at < s.size() && s[at] >= '0' && s[at] <= '9') {
    n = n * 10 + (s[at++] - '0');
    if (n > kMaxWidth)
      fail("a width or precision in a format is larger than " + std::to_string(kMaxWidth));
  }
  return n;
}

Spec parse_spec(const std::string &text) {
  Spec spec;
  size_t at = 0;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    size_t next = 0;
    next_code_point(text, next);
    if (next < text.size() && is_align(text[next])) {
      spec.fill = text.substr(0, next);
      spec.align = text[next];
      at = next + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  if (peek() == '+' || peek() == '-' || peek() == ' ')
    spec.sign = text[at++];
  if (peek() == '#') {
    spec.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    ++at;
    if (!spec.align) {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  spec.width = read_number(text, at);
  if (peek() == ',' || peek() == '_')
    (text[at++] == ',' ? spec.comma : spec.underscore) = true;
  if (peek() == '.') {
    ++at;
    if (peek() < '0' || peek() > '9')
      fail("Format specifier missing precision");
    spec.precision = read_number(text, at);
  }
  if (at < text.size())
    spec.type = text[at++];
  if (at != text.size())
    fail("Invalid format specifier");
  return spec;
}

std::string truncated(const std::string &s, int64_t code_points) {
  return code_points < 0 ? s : s.substr(0, offset_of(s, static_cast<size_t>(code_points)));
}

std::string ascii_repr(const Value &v) {
  std::string text = repr(v), out;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_code_point(text, at);
    if (c < 0x80) {
      out += static_cast<char>(c);
      continue;
    }
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x",
                  static_cast<unsigned>(c));
    out += buffer;
  }
  return out;
}

// One conversion of a % format.
std::string convert_percent(char conversion, const Value &value, Spec spec) {
  switch (conversion) {
  case 's':
  case 'r':
  case 'a': {
    std::string text = conversion == 's' ? to_str(value) : conversion == 'r' ? repr(value) : ascii_repr(value);
    return padded(truncated(text, spec.precision), spec, '>', 0);
  }
  case 'c':
    if (value.is_string() && value.str_object().code_points == 1)
      return padded(value.str(), spec, '>', 0);
    if (!value.is_integral())
      fail("%c requires int or char");
    spec.type = 'c';
    if (!spec.align)
      spec.align = '>';
    return format_number(value, spec);
  case 'd':
  case 'i':
  case 'u':
  case 'o':
  case 'x':
  case 'X': {
    require_defined(value);
    Value integer = value;
    bool decimal = conversion == 'd' || conversion == 'i' || conversion == 'u';
    if (value.is(Kind::floating) && decimal) {
      double d = std::trunc(value.as_double());
      if (!std::isfinite(d) || std::fabs(d) > 1e37)
        fail("cannot convert the float " + repr_float(d) + " to an integer");
      integer = Value::integer(static_cast<Int>(d));
    } else if (!value.is_integral()) {
      fail(std::string("%") + conversion + " format: " + (decimal ? "a real number" : "an integer") +
           " is required, not " + type_name(value));
    }
    if (spec.precision > 0) { // minimum digits
      Spec digits = spec;
      digits.width = 0;
      digits.type = decimal ? 'd' : conversion;
      digits.precision = -1;
      std::string text = format_number(integer, digits);
      size_t sign = text.find_first_not_of("+- ");
      std::string body = text.substr(sign);
      return padded(text.substr(0, sign) + repeat("0", spec.precision - static_cast<int64_t>(body.size())) + body, spec,
                    '>', sign);
    }
    spec.precision = -1;
    spec.type = decimal ? 'd' : conversion;
    return format_number(integer, spec);
  }
  case 'e':
  case 'E':
  case 'f':
  case 'F':
  case 'g':
  case 'G':
    require_defined(value);
    if (!value.is_number())
      fail(std::string("must be real number, not ") + type_name(value));
    spec.type = conversion;
    return format_number(Value::floating(value.as_double()), spec);
  default:
    fail(std::string("unsupported format character '") + conversion + "'");
  }
}

} // namespace

std::string format_percent(const std::string &format, const Value &values, bool markup) {
  std::string out;
  size_t used = 0;
  auto next_value = [&]() -> Value {
    if (values.is(Kind::tuple)) {
      if (used >= values.items().size())
        fail("not enough arguments for format string");
      return values.items()[used++];
    }
    if (used++)
      fail("not enough arguments for format string");
    return values;
  };
  charge_bytes(format.size());
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    ++at;
    Value value = Value::missing();
    if (at < format.size() && format[at] == '(') {
      size_t close = format.find(')', at);
      if (close == std::string::npos)
        fail("incomplete format key");
      if (!values.is(Kind::dict))
        fail("format requires a mapping");
      std::string key = format.substr(at + 1, close - at - 1);
      const Value *found = values.dict().find(std::string_view(key));
      if (!found)
        fail(repr(Value::string(key)));
      value = *found;
      at = close + 1;
    }
    Spec spec;
    for (; at < format.size() && std::string_view("-+ #0").find(format[at]) != std::string_view::npos; ++at) {
      switch (format[at]) {
      case '-':
        spec.align = '<';
        spec.fill = " ";
        break;
      case '0':
        if (!spec.align) {
          spec.align = '=';
          spec.fill = "0";
        }
        break;
      case '#':
        spec.alternate = true;
        break;
      default:
        if (spec.sign != '+')
          spec.sign = format[at];
      }
    }
    auto number = [&] {
      if (at < format.size() && format[at] == '*') {
        ++at;
        int64_t n = to_index(next_value(), "a * width");
        if (n > kMaxWidth || n < -kMaxWidth)
          fail("a width or precision in a format is larger than " + std::to_string(kMaxWidth));
        return n;
      }
      return read_number(format, at);
    };
    spec.width = number();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (at < format.size() && format[at] == '.') {
      ++at;
      spec.precision = std::max<int64_t>(number(), 0);
    }
    if (at >= format.size())
      fail("incomplete format");
    char conversion = format[at++];
    if (conversion == '%') {
      out += '%';
      continue;
    }
    if (value.is_missing())
      value = next_value();
    if (markup && (conversion == 's' || conversion == 'r' || conversion == 'a') &&
        !(value.is_string() && value.str_object().markup)) {
      value = Value::string(html_escape(conversion == 's' ? to_str(value) : repr(value)));
      conversion = 's';
    }
    if (std::string_view("sra").find(conversion) != std::string_view::npos && spec.align == '=') {
      spec.align = '>';
      spec.fill = " ";
    }
    std::string text = convert_percent(conversion, value, spec);
    check_memory(out.size() + text.size());
    out += text;
  }
  if (values.is(Kind::tuple) ? used < values.items().size()
                             : used == 0 && !values.is(Kind::dict) && !values.is(Kind::list) && !values.is(Kind::range))
    fail("not all arguments converted during string formatting");
  return out;
}

std::string format_value(const Value &value, const std::string &text) {
  if (text.empty())
    return to_str(value);
  if (value.is_string()) {
    Spec spec = parse_spec(text);
    if (spec.type && spec.type != 's')
      fail(std::string("Unknown format code '") + spec.type + "' for object of type 'str'");
    if (spec.align == '=') {
      if (spec.fill != "0")
        fail("'=' alignment not allowed in string format specifier");
      spec.align = '<';
    }
    if (spec.comma || spec.underscore || spec.sign != '-' || spec.alternate)
      fail("Invalid format specifier for a str");
    return padded(truncated(value.str(), spec.precision), spec, '<', 0);
  }
  if (value.is_number()) {
    Spec spec = parse_spec(text);
    if (value.is(Kind::floating) && spec.type && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos)
      fail(std::string("Unknown format code '") + spec.type + "' for object of type 'float'");
    return format_number(value, spec);
  }
  fail(std::string("unsupported format string passed to ") + type_name(value) + ".__format__");
}

namespace {

// The pieces of "{}": literal text and fields, with fields inside of a field's own format.
class BraceFormatter {
public:
  BraceFormatter(Interpreter &interpreter, const Arguments &arguments)
      : interpreter_(interpreter), arguments_(arguments) {}

  std::string run(const std::string &format, int depth) {
    if (depth > 2)
      fail("Max string recursion exceeded");
    charge_bytes(format.size());
    std::string out;
    for (size_t at = 0; at < format.size();) {
      char c = format[at++];
      if (c == '{' || c == '}') {
        if (at < format.size() && format[at] == c) {
          ++at;
        } else if (c == '}') {
          fail("Single '}' encountered in format string");
        } else {
          std::string text = field(format, at, depth);
          check_memory(out.size() + text.size());
          out += text;
          continue;
        }
      }
      out += c;
    }
    return out;
  }

private:
  // A field whose '{' is consumed; moves past its '}'.
  std::string field(const std::string &format, size_t &at, int depth) {
    size_t begin = at;
    int open = 1;
    while (at < format.size() && open > 0) {
      open += format[at] == '{' ? 1 : format[at] == '}' ? -1 : 0;
      ++at;
    }
    if (open > 0)
      fail(at == begin ? "Single '{' encountered in format string" : "expected '}' before end of string");
    std::string body = format.substr(begin, at - 1 - begin), spec;
    char conversion = 0;
    size_t name_end = body.size();
    for (size_t i = 0, brackets = 0; i < body.size(); ++i) {
      if (body[i] == '[')
        ++brackets;
      else if (body[i] == ']' && brackets)
        --brackets;
      else if (!brackets && (body[i] == '!' || body[i] == ':')) {
        name_end = i;
        break;
      }
    }
    if (name_end < body.size()) {
      size_t i = name_end;
      if (body[i] == '!') {
        if (i + 1 >= body.size())
          fail("end of string while looking for conversion specifier");
        conversion = body[i + 1];
        i += 2;
        if (i < body.size() && body[i] != ':')
          fail("expected ':' after conversion specifier");
      }
      if (i < body.size())
        spec = body.substr(i + 1);
    }
    Value value = lookup(body.substr(0, name_end));
    if (conversion == 'r')
      value = Value::string(repr(value));
    else if (conversion == 's')
      value = Value::string(to_str(value));
    else if (conversion == 'a')
      value = Value::string(ascii_repr(value));
    else if (conversion)
      fail(std::string("Unknown conversion specifier ") + conversion);
    return format_value(value, run(spec, depth + 1));
  }

  Value lookup(const std::string &name) {
    size_t end = name.find_first_of(".[");
    std::string first = name.substr(0, end);
    Value value;
    bool numeric = !first.empty() && first.find_first_not_of("0123456789") == std::string::npos;
    if (first.empty() || numeric) {
      size_t index;
      if (first.empty()) {
        if (manual_)
          fail("cannot switch from manual field specification to automatic field numbering");
        automatic_ = true;
        index = next_++;
      } else {
        if (automatic_)
          fail("cannot switch from automatic field numbering to manual field specification");
        manual_ = true;
        size_t at = 0;
        index = static_cast<size_t>(read_number(first, at));
      }
      if (index >= arguments_.positional.size())
        fail("Replacement index " + std::to_string(index) + " out of range for positional args tuple");
      value = arguments_.positional[index];
    } else {
      bool found = false;
      for (const auto &[key, named] : arguments_.named)
        if (key == first) {
          value = named;
          found = true;
        }
      if (!found)
        fail(repr(Value::string(first)));
    }
    while (end != std::string::npos && end < name.size()) {
      if (name[end] == '.') {
        size_t stop = name.find_first_of(".[", end + 1);
        value = interpreter_.attribute(
            value, name.substr(end + 1, stop == std::string::npos ? stop : stop - end - 1));
        end = stop;
      } else {
        size_t close = name.find(']', end);
        if (close == std::string::npos)
          fail("Missing ']' in format string");
        std::string key = name.substr(end + 1, close - end - 1);
        size_t at = 0;
        bool is_index = !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
        value = interpreter_.item(value, is_index ? Value::integer(read_number(key, at)) : Value::string(key));
        end = close + 1;
        if (end < name.size() && name[end] != '.' && name[end] != '[')
          fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Interpreter &interpreter_;
  const Arguments &arguments_;
  size_t next_ = 0;
  bool automatic_ = false, manual_ = false;
};

} // namespace

std::string format_braces(Interpreter &interpreter, const std::string &format, const Arguments &arguments) {
  return BraceFormatter(interpreter, arguments).run(format, 0);
}

} // namespace llmrt::text::jinja
