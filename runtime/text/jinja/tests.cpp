// Jinja's tests: `value is name(arguments)`.
#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"

namespace llmrt::text::jinja {

namespace {

template <bool (*test)(const Value &)> bool unary(Interpreter &, const Value &v, Arguments &arguments) {
  Bound bound("a test", arguments, {}, 0);
  return test(v);
}

template <bool (*test)(const Value &, const Value &)> bool with_other(Interpreter &, const Value &v, Arguments &a) {
  Bound bound("a test", a, {"other"}, 1);
  return test(v, bound[0]);
}

bool divides(const Value &v, const Value &number) {
  return equal(binary("%", v, number), Value::integer(0));
}

bool is_sequence(const Value &v) {
  switch (v.kind()) {
  case Kind::undefined:
  case Kind::string:
  case Kind::list:
  case Kind::tuple:
  case Kind::dict:
  case Kind::range:
    return true;
  default:
    return false;
  }
}

bool is_callable(const Value &v) {
  switch (v.kind()) {
  case Kind::undefined:
  case Kind::function:
  case Kind::macro:
  case Kind::loop:
  case Kind::joiner:
    return true;
  default:
    return false;
  }
}

bool less(const Value &a, const Value &b) { return ordered(Order::lt, a, b); }
bool less_equal(const Value &a, const Value &b) { return ordered(Order::le, a, b); }
bool greater(const Value &a, const Value &b) { return ordered(Order::gt, a, b); }
bool greater_equal(const Value &a, const Value &b) { return ordered(Order::ge, a, b); }
bool not_equal(const Value &a, const Value &b) { return !equal(a, b); }
bool is_in(const Value &item, const Value &container) { return contains(container, item); }
bool is_odd(const Value &v) { return equal(binary("%", v, Value::integer(2)), Value::integer(1)); }
bool is_even(const Value &v) { return divides(v, Value::integer(2)); }

struct NamedTest {
  const char *name;
  TestFunction function;
};

const NamedTest kTests[] = {
    {"!=", with_other<not_equal>},
    {"<", with_other<less>},
    {"<=", with_other<less_equal>},
    {"==", with_other<equal>},
    {">", with_other<greater>},
    {">=", with_other<greater_equal>},
    {"boolean", unary<[](const Value &v) { return v.is(Kind::boolean); }>},
    {"callable", unary<is_callable>},
    {"defined", unary<[](const Value &v) { return !v.is_undefined(); }>},
    {"divisibleby", with_other<divides>},
    {"eq", with_other<equal>},
    {"equalto", with_other<equal>},
    {"escaped", unary<[](const Value &v) { return v.is_string() && v.str_object().markup; }>},
    {"even", unary<is_even>},
    {"false", unary<[](const Value &v) { return v.is(Kind::boolean) && !v.as_bool(); }>},
    {"filter", unary<[](const Value &v) { return v.is_string() && is_filter(v.str()); }>},
    {"float", unary<[](const Value &v) { return v.is(Kind::floating); }>},
    {"ge", with_other<greater_equal>},
    {"greaterthan", with_other<greater>},
    {"gt", with_other<greater>},
    {"in", with_other<is_in>},
    {"integer", unary<[](const Value &v) { return v.is(Kind::integer); }>},
    {"iterable", unary<is_iterable>},
    {"le", with_other<less_equal>},
    {"lessthan", with_other<less>},
    {"lower", unary<[](const Value &v) { return all_cased(to_str(v), false); }>},
    {"lt", with_other<less>},
    {"mapping", unary<[](const Value &v) { return v.is(Kind::dict); }>},
    {"ne", with_other<not_equal>},
    {"none", unary<[](const Value &v) { return v.is_none(); }>},
    {"number", unary<[](const Value &v) { return v.is_number(); }>},
    {"odd", unary<is_odd>},
    {"sameas", with_other<same_object>},
    {"sequence", unary<is_sequence>},
    {"string", unary<[](const Value &v) { return v.is_string(); }>},
    {"test", unary<[](const Value &v) { return v.is_string() && is_test(v.str()); }>},
    {"true", unary<[](const Value &v) { return v.is(Kind::boolean) && v.as_bool(); }>},
    {"undefined", unary<[](const Value &v) { return v.is_undefined(); }>},
    {"upper", unary<[](const Value &v) { return all_cased(to_str(v), true); }>},
};

} // namespace

TestFunction find_test(const std::string &name) {
  for (const auto &test : kTests)
    if (name == test.name)
      return test.function;
  return nullptr;
}

} // namespace llmrt::text::jinja
