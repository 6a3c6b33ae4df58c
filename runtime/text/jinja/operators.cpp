// Arithmetic and slicing with Python's semantics (see operators.h).
#include "runtime/text/jinja/operators.h"

#include "runtime/text/jinja/format.h"
#include "runtime/text/jinja/unicode.h"

#include <algorithm>
#include <cmath>

namespace llmrt::text::jinja {

namespace {

[[noreturn]] void unsupported(const std::string &op, const Value &a, const Value &b) {
  fail("unsupported operand type(s) for " + op + ": '" + type_name(a) + "' and '" + type_name(b) + "'");
}

[[noreturn]] void overflow() { fail("an integer result has more than 127 bits"); }

Int floor_div(Int a, Int b) {
  if (b == -1) {
    Int r;
    if (__builtin_sub_overflow(static_cast<Int>(0), a, &r))
      overflow();
    return r;
  }
  Int q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Int floor_mod(Int a, Int b) {
  if (b == -1)
    return 0;
  Int r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double float_mod(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0)
    return (r < 0) != (b < 0) ? r + b : r;
  return std::copysign(0.0, b);
}

double float_floor_div(double a, double b) {
  double mod = std::fmod(a, b);
  double quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0))
    quotient -= 1;
  if (quotient == 0)
    return std::copysign(0.0, a / b);
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

Value integer_power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0)
      fail("0.0 cannot be raised to a negative power");
    return Value::floating(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
      overflow();
  }
  return Value::integer(result);
}

Value integers(const std::string &op, Int a, Int b) {
  Int r = 0;
  if (op == "+") {
    if (__builtin_add_overflow(a, b, &r))
      overflow();
  } else if (op == "-") {
    if (__builtin_sub_overflow(a, b, &r))
      overflow();
  } else if (op == "*") {
    if (__builtin_mul_overflow(a, b, &r))
      overflow();
  } else if (op == "**") {
    return integer_power(a, b);
  } else {
    if (b == 0)
      fail(op == "/" ? "division by zero" : op == "//" ? "integer division or modulo by zero" : "integer modulo by zero");
    if (op == "/")
      return Value::floating(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    r = op == "//" ? floor_div(a, b) : floor_mod(a, b);
  }
  return Value::integer(r);
}

Value floats(const std::string &op, double a, double b) {
  if (op == "+")
    return Value::floating(a + b);
  if (op == "-")
    return Value::floating(a - b);
  if (op == "*")
    return Value::floating(a * b);
  if (op == "**") {
    if (a == 0 && b < 0)
      fail("0.0 cannot be raised to a negative power");
    if (a < 0 && std::isfinite(b) && std::floor(b) != b)
      fail("a negative number to a fractional power is a complex number, which is not supported");
    double r = std::pow(a, b);
    if (std::isinf(r) && std::isfinite(a) && std::isfinite(b))
      fail("(34, 'Numerical result out of range')");
    return Value::floating(r);
  }
  if (b == 0)
    fail(op == "/" ? "float division by zero" : op == "//" ? "float floor division by zero" : "float modulo");
  if (op == "/")
    return Value::floating(a / b);
  return Value::floating(op == "//" ? float_floor_div(a, b) : float_mod(a, b));
}

Value repeat_items(const Value &sequence, Int times) {
  const auto &items = sequence.items();
  times = std::max<Int>(times, 0);
  if (!items.empty() && times > (Int(1) << 40) / static_cast<Int>(items.size()))
    check_memory(SIZE_MAX / 2);
  size_t total = items.size() * static_cast<size_t>(items.empty() ? 0 : times);
  check_memory(total * sizeof(Value));
  charge(static_cast<int64_t>(total));
  std::vector<Value> out;
  out.reserve(total);
  for (size_t i = 0; i < total; ++i)
    out.push_back(items[i % items.size()]);
  return sequence.is(Kind::list) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

Value add_sequences(const Value &a, const Value &b) {
  check_memory((a.items().size() + b.items().size()) * sizeof(Value));
  std::vector<Value> out = a.items();
  out.insert(out.end(), b.items().begin(), b.items().end());
  return a.is(Kind::list) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

Value add_strings(const Value &a, const Value &b) {
  bool markup = a.str_object().markup || b.str_object().markup;
  check_memory(a.str().size() + b.str().size());
  if (!markup)
    return Value::string(a.str() + b.str());
  auto safe = [](const Value &v) { return v.str_object().markup ? v.str() : html_escape(v.str()); };
  return Value::string(safe(a) + safe(b), true);
}

} // namespace

std::string repeat(const std::string &s, Int times) {
  if (times <= 0 || s.empty())
    return {};
  if (times > (Int(1) << 40) / static_cast<Int>(s.size()))
    check_memory(SIZE_MAX / 2);
  size_t total = s.size() * static_cast<size_t>(times);
  check_memory(total);
  charge_bytes(total);
  std::string out;
  out.reserve(total);
  for (size_t i = 0; i < static_cast<size_t>(times); ++i)
    out += s;
  return out;
}

Value binary(const std::string &op, const Value &a, const Value &b) {
  if (a.is_integral() && b.is_integral())
    return integers(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number())
    return floats(op, a.as_double(), b.as_double());
  if (op == "%" && a.is_string())
    return Value::string(format_percent(a.str(), b, a.str_object().markup), a.str_object().markup);
  require_defined(a);
  require_defined(b);
  if (op == "+") {
    if (a.is_string() && b.is_string())
      return add_strings(a, b);
    if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple)))
      return add_sequences(a, b);
    if (a.is_string())
      fail(std::string("can only concatenate str (not \"") + type_name(b) + "\") to str");
    if (a.is(Kind::list) || a.is(Kind::tuple))
      fail(std::string("can only concatenate ") + type_name(a) + " (not \"" + type_name(b) + "\") to " + type_name(a));
  }
  if (op == "*") {
    const Value &sequence = a.is_integral() ? b : a, &times = a.is_integral() ? a : b;
    if (times.is_integral()) {
      if (sequence.is_string())
        return Value::string(repeat(sequence.str(), times.as_int()), sequence.str_object().markup);
      if (sequence.is(Kind::list) || sequence.is(Kind::tuple))
        return repeat_items(sequence, times.as_int());
    }
  }
  unsupported(op == "**" ? "** or pow()" : op, a, b);
}

Value negative(const Value &v) {
  require_defined(v);
  if (v.is(Kind::floating))
    return Value::floating(-v.as_double());
  if (!v.is_integral())
    fail(std::string("bad operand type for unary -: '") + type_name(v) + "'");
  Int r;
  if (__builtin_sub_overflow(static_cast<Int>(0), v.as_int(), &r))
    overflow();
  return Value::integer(r);
}

Value positive(const Value &v) {
  require_defined(v);
  if (v.is(Kind::floating))
    return v;
  if (!v.is_integral())
    fail(std::string("bad operand type for unary +: '") + type_name(v) + "'");
  return Value::integer(v.as_int());
}

int64_t to_index(const Value &v, const char *what) {
  require_defined(v);
  if (!v.is_integral())
    fail(std::string(what) + " must be an integer, not " + type_name(v));
  constexpr Int limit = Int(1) << 62;
  return static_cast<int64_t>(std::clamp<Int>(v.as_int(), -limit, limit));
}

SliceIndices slice_indices(size_t length, const Value &start, const Value &stop, const Value &step) {
  auto bound = [](const Value &v) {
    if (!v.is_none() && !v.is_integral())
      fail("slice indices must be integers or None or have an __index__ method");
    return static_cast<Int>(v.is_none() ? 0 : to_index(v, "a slice index"));
  };
  SliceIndices out{bound(start), bound(stop), step.is_none() ? 1 : bound(step), 0};
  if (out.step == 0)
    fail("slice step cannot be zero");
  Int n = static_cast<Int>(length), lower = out.step > 0 ? 0 : -1, upper = out.step > 0 ? n : n - 1;
  auto clamp = [&](Int v) { return v < 0 ? std::max(v + n, lower) : std::min(v, upper); };
  out.start = start.is_none() ? (out.step > 0 ? lower : upper) : clamp(out.start);
  out.stop = stop.is_none() ? (out.step > 0 ? upper : lower) : clamp(out.stop);
  if (out.step > 0 && out.start < out.stop)
    out.count = static_cast<size_t>((out.stop - out.start - 1) / out.step + 1);
  else if (out.step < 0 && out.start > out.stop)
    out.count = static_cast<size_t>((out.start - out.stop - 1) / -out.step + 1);
  return out;
}

namespace {

Value slice_string(const Value &object, const SliceIndices &s) {
  const std::string &text = object.str();
  const bool markup = object.str_object().markup;
  charge_bytes(text.size());
  if (s.count == 0)
    return Value::string({}, markup);
  if (s.step == 1) {
    size_t begin, end;
    if (object.str_object().ascii()) {
      begin = static_cast<size_t>(s.start);
      end = begin + s.count;
    } else {
      begin = offset_of(text, static_cast<size_t>(s.start));
      end = begin + offset_of(std::string_view(text).substr(begin), s.count);
    }
    return Value::string(text.substr(begin, end - begin), markup);
  }
  std::u32string wide;
  check_memory(text.size() * 4);
  for (size_t at = 0; at < text.size();)
    wide += next_code_point(text, at);
  std::string out;
  for (size_t i = 0; i < s.count; ++i)
    append_code_point(out, wide[static_cast<size_t>(s.start + static_cast<Int>(i) * s.step)]);
  return Value::string(std::move(out), markup);
}

} // namespace

Value slice(const Value &object, const Value &start, const Value &stop, const Value &step) {
  require_defined(object);
  switch (object.kind()) {
  case Kind::string:
    return slice_string(object, slice_indices(object.str_object().code_points, start, stop, step));
  case Kind::list:
  case Kind::tuple: {
    auto s = slice_indices(object.items().size(), start, stop, step);
    std::vector<Value> out;
    out.reserve(s.count);
    for (size_t i = 0; i < s.count; ++i)
      out.push_back(object.items()[static_cast<size_t>(s.start + static_cast<Int>(i) * s.step)]);
    return object.is(Kind::list) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
  }
  case Kind::range: {
    const auto &range = object.as<RangeObject>();
    auto s = slice_indices(range.length, start, stop, step);
    return Value(Kind::range, std::make_shared<RangeObject>(range.start + s.start * range.step,
                                                            range.start + s.stop * range.step, range.step * s.step));
  }
  case Kind::dict:
    fail("unhashable type: 'slice'");
  default:
    fail(std::string("'") + type_name(object) + "' object is not subscriptable");
  }
}

Value at_index(const Value &sequence, Int index) {
  auto length = static_cast<Int>(*length_of(sequence));
  if (index < 0)
    index += length;
  if (index < 0 || index >= length)
    return Value::missing();
  auto i = static_cast<size_t>(index);
  switch (sequence.kind()) {
  case Kind::string: {
    const auto &s = sequence.str_object();
    if (s.ascii())
      return Value::string(s.text.substr(i, 1), s.markup);
    charge_bytes(s.text.size());
    size_t begin = offset_of(s.text, i), end = begin;
    next_code_point(s.text, end);
    return Value::string(s.text.substr(begin, end - begin), s.markup);
  }
  case Kind::range: {
    const auto &range = sequence.as<RangeObject>();
    return Value::integer(range.start + static_cast<Int>(i) * range.step);
  }
  default:
    return sequence.items()[i];
  }
}

} // namespace llmrt::text::jinja
