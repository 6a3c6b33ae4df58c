// Filters on numbers, and the conversions to them.
#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/unicode.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace llmrt::text::jinja {

namespace {

// Digits with single underscores between them, without the underscores; none if the text is malformed.
std::optional<std::string> without_underscores(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') {
      out += s[i];
      continue;
    }
    if (i == 0 || i + 1 == s.size() || !std::isalnum(static_cast<unsigned char>(s[i - 1])) ||
        !std::isalnum(static_cast<unsigned char>(s[i + 1])))
      return std::nullopt;
  }
  return out;
}

// int(text, base)
std::optional<Int> parse_int(std::string_view text, int64_t base) {
  text = strip(text, Side::both);
  bool is_negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+'))
    text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    char mark = static_cast<char>(text[1] | 0x20);
    int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked && (base == marked || base == 0)) {
      base = marked;
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  }
  if (base == 0) {
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
    base = 10;
  }
  auto digits = without_underscores(text);
  if (!digits || digits->empty())
    return std::nullopt;
  Int value = 0;
  for (char c : *digits) {
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
    if (digit >= base)
      return std::nullopt;
    if (__builtin_mul_overflow(value, static_cast<Int>(base), &value) ||
        __builtin_add_overflow(value, static_cast<Int>(digit), &value))
      fail("an integer has more than 127 bits");
  }
  return is_negative ? -value : value;
}

// float(text)
std::optional<double> parse_float(std::string_view text) {
  text = strip(text, Side::both);
  auto plain = without_underscores(text);
  if (!plain || plain->empty())
    return std::nullopt;
  std::string lower = to_lower(*plain);
  std::string_view body = lower;
  if (body[0] == '+' || body[0] == '-')
    body.remove_prefix(1);
  bool named = body == "inf" || body == "infinity" || body == "nan";
  if (!named) {
    if (body.empty() || body.find_first_not_of("0123456789.e+-") != std::string_view::npos)
      return std::nullopt;
  }
  char *end = nullptr;
  double value = std::strtod(plain->c_str(), &end);
  if (end != plain->c_str() + plain->size())
    return std::nullopt;
  return value;
}

std::optional<Int> truncate_to_int(double d) {
  if (!std::isfinite(d))
    return std::nullopt;
  if (std::fabs(d) > 1.7e38)
    fail("an integer has more than 127 bits");
  return static_cast<Int>(std::trunc(d));
}

Value to_int(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("int", arguments, {"default", "base"}, 0);
  Value fallback = bound.or_else(0, Value::integer(0));
  require_defined(input);
  if (input.is_integral())
    return Value::integer(input.as_int());
  std::optional<Int> value;
  if (input.is(Kind::floating)) {
    if (std::isinf(input.as_double()))
      fail("cannot convert float infinity to integer");
    value = truncate_to_int(input.as_double());
  } else if (input.is_string()) {
    int64_t base = bound.has(1) ? to_index(bound[1], "a base") : 10;
    if (base == 0 || (base >= 2 && base <= 36))
      value = parse_int(input.str(), base);
    if (!value)
      if (auto d = parse_float(input.str()))
        value = truncate_to_int(*d);
  }
  return value ? Value::integer(*value) : fallback;
}

Value to_float(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("float", arguments, {"default"}, 0);
  require_defined(input);
  if (input.is_number())
    return Value::floating(input.as_double());
  if (input.is_string())
    if (auto d = parse_float(input.str()))
      return Value::floating(*d);
  return bound.or_else(0, Value::floating(0));
}

Value absolute(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("abs", arguments, {}, 0);
  if (input.is(Kind::floating))
    return Value::floating(std::fabs(input.as_double()));
  if (!input.is_integral())
    fail(std::string("bad operand type for abs(): '") + type_name(input) + "'");
  return input.as_int() < 0 ? negative(input) : Value::integer(input.as_int());
}

// round(value, digits): half to even, on the exact decimal value.
Value round_common(const Value &input, int64_t digits) {
  if (input.is_integral()) {
    if (digits >= 0)
      return Value::integer(input.as_int());
    if (digits < -38)
      return Value::integer(0);
    Int unit = 1;
    for (int64_t i = 0; i < -digits; ++i)
      unit *= 10;
    Int value = input.as_int(), half = unit / 2;
    Int rest = ((value % unit) + unit) % unit, down = value - rest;
    bool up = rest > half || (rest == half && (down / unit) % 2 != 0);
    return Value::integer(up ? down + unit : down);
  }
  double d = input.as_double();
  if (!std::isfinite(d) || digits > 330)
    return input;
  if (digits < -310)
    return Value::floating(std::copysign(0.0, d));
  if (digits >= 0) {
    char buffer[700];
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), d);
    return Value::floating(std::strtod(buffer, nullptr));
  }
  // Round in scientific form, at the digit that `digits` names.
  double magnitude = std::fabs(d);
  int exponent = magnitude > 0 ? static_cast<int>(std::floor(std::log10(magnitude))) : 0;
  int kept = exponent + static_cast<int>(digits);
  if (kept < 0) {
    double half = std::pow(10.0, static_cast<double>(-digits)) / 2;
    return Value::floating(std::copysign(magnitude > half ? 2 * half : 0.0, d));
  }
  char buffer[700];
  std::snprintf(buffer, sizeof buffer, "%.*e", kept, d);
  return Value::floating(std::strtod(buffer, nullptr));
}

Value round(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("round", arguments, {"precision", "method"}, 0);
  std::string method = bound.has(1) ? require_string(bound[1], "round") : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail("method must be common, ceil or floor");
  int64_t digits = bound.has(0) ? to_index(bound[0], "precision") : 0;
  if (!input.is_number())
    fail(std::string("type ") + type_name(input) + " doesn't define __round__ method");
  if (method == "common")
    return round_common(input, digits);
  double scale = std::pow(10.0, static_cast<double>(digits));
  double scaled = input.as_double() * scale;
  if (!std::isfinite(scaled))
    fail("cannot round a number that is not finite");
  return Value::floating((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

const NamedFilter kFilters[] = {
    {"abs", absolute},
    {"float", to_float},
    {"int", to_int},
    {"round", round},
};

} // namespace

FilterTable number_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

} // namespace llmrt::text::jinja
