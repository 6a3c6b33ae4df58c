// Python's protocols over values: truth, equality, order, hashing, length, iteration, membership.
#include "runtime/text/jinja/unicode.h"
#include "runtime/text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llmrt::text::jinja {

const char *type_name(const Value &v) {
  switch (v.kind()) {
  case Kind::missing:
    return "missing";
  case Kind::undefined:
    return "Undefined";
  case Kind::none:
    return "NoneType";
  case Kind::boolean:
    return "bool";
  case Kind::integer:
    return "int";
  case Kind::floating:
    return "float";
  case Kind::string:
    return v.str_object().markup ? "Markup" : "str";
  case Kind::list:
    return "list";
  case Kind::tuple:
    return "tuple";
  case Kind::dict:
    return "dict";
  case Kind::dict_view:
    switch (v.as<DictView>().what) {
    case DictView::What::keys:
      return "dict_keys";
    case DictView::What::values:
      return "dict_values";
    case DictView::What::items:
      return "dict_items";
    }
    return "dict_items";
  case Kind::range:
    return "range";
  case Kind::iterator:
    return "generator";
  case Kind::name_space:
    return "Namespace";
  case Kind::macro:
    return "Macro";
  case Kind::function:
    return "builtin_function_or_method";
  case Kind::loop:
    return "LoopContext";
  case Kind::cycler:
    return "Cycler";
  case Kind::joiner:
    return "Joiner";
  }
  return "object";
}

std::string object_type_repr(const Value &v) {
  switch (v.kind()) {
  case Kind::none:
    return "None";
  case Kind::loop:
  case Kind::macro:
    return std::string("jinja2.runtime.") + type_name(v) + " object";
  case Kind::name_space:
  case Kind::cycler:
  case Kind::joiner:
    return std::string("jinja2.utils.") + type_name(v) + " object";
  default:
    return std::string(type_name(v)) + " object";
  }
}

bool truthy(const Value &v) {
  switch (v.kind()) {
  case Kind::missing:
  case Kind::undefined:
  case Kind::none:
    return false;
  case Kind::boolean:
    return v.as_bool();
  case Kind::integer:
    return v.as_int() != 0;
  case Kind::floating:
    return v.as_double() != 0;
  case Kind::string:
  case Kind::list:
  case Kind::tuple:
  case Kind::dict:
  case Kind::dict_view:
  case Kind::range:
  case Kind::loop:
    return *length_of(v) != 0;
  default:
    return true;
  }
}

std::optional<size_t> length_of(const Value &v) {
  switch (v.kind()) {
  case Kind::undefined:
    return 0;
  case Kind::string:
    return v.str_object().code_points;
  case Kind::list:
  case Kind::tuple:
    return v.items().size();
  case Kind::dict:
    return v.dict().items.size();
  case Kind::dict_view:
    return v.as<DictView>().dict.dict().items.size();
  case Kind::range:
    return v.as<RangeObject>().length;
  case Kind::loop:
    return v.as<LoopObject>().length();
  default:
    return std::nullopt;
  }
}

bool same_object(const Value &a, const Value &b) {
  if (a.kind() != b.kind())
    return false;
  switch (a.kind()) {
  case Kind::none:
    return true;
  case Kind::boolean:
  case Kind::integer: // small integers are shared in Python; larger ones cannot be told apart here
    return a.as_int() == b.as_int();
  case Kind::floating:
    return false;
  case Kind::string:
    return a.object() == b.object() || (a.str() == b.str() && a.str().size() <= 1);
  default:
    return a.object() == b.object();
  }
}

namespace {

bool equal_items(const std::vector<Value> &a, const std::vector<Value> &b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

bool equal_numbers(const Value &a, const Value &b) {
  if (a.is_integral() && b.is_integral())
    return a.as_int() == b.as_int();
  return static_cast<long double>(a.is_integral() ? static_cast<long double>(a.as_int()) : a.as_double()) ==
         static_cast<long double>(b.is_integral() ? static_cast<long double>(b.as_int()) : b.as_double());
}

bool equal_views(const DictView &a, const DictView &b) {
  if (a.what == DictView::What::values || b.what == DictView::What::values)
    return &a == &b;
  size_t n = a.dict.dict().items.size();
  if (n != b.dict.dict().items.size())
    return false;
  for (size_t i = 0; i < n; ++i) {
    const auto &[key, value] = a.dict.dict().items[i];
    const Value *other = b.dict.dict().find(key);
    if (!other || a.what != b.what || (a.what == DictView::What::items && !equal(value, *other)))
      return false;
  }
  return true;
}

} // namespace

bool equal(const Value &a, const Value &b) {
  charge(1);
  if (a.is_number() && b.is_number())
    return equal_numbers(a, b);
  if (a.kind() != b.kind())
    return false;
  switch (a.kind()) {
  case Kind::undefined:
  case Kind::none:
    return true;
  case Kind::string:
    charge_bytes(std::min(a.str().size(), b.str().size()));
    return a.str() == b.str();
  case Kind::list:
  case Kind::tuple:
    return a.object() == b.object() || equal_items(a.items(), b.items());
  case Kind::dict: {
    const Dict &x = a.dict(), &y = b.dict();
    if (x.items.size() != y.items.size())
      return false;
    return std::all_of(x.items.begin(), x.items.end(), [&](const Dict::Item &item) {
      const Value *other = y.find(item.first);
      return other && equal(item.second, *other);
    });
  }
  case Kind::dict_view:
    return equal_views(a.as<DictView>(), b.as<DictView>());
  case Kind::range: {
    const auto &x = a.as<RangeObject>(), &y = b.as<RangeObject>();
    return x.length == y.length &&
           (x.length == 0 || (x.start == y.start && (x.length == 1 || x.step == y.step)));
  }
  default:
    return a.object() == b.object();
  }
}

bool ordered(Order op, const Value &a, const Value &b) {
  charge(1);
  require_defined(a);
  require_defined(b);
  auto by = [op](const auto &x, const auto &y) {
    switch (op) {
    case Order::lt:
      return x < y;
    case Order::le:
      return x <= y;
    case Order::gt:
      return x > y;
    case Order::ge:
      break;
    }
    return x >= y;
  };
  if (a.is_integral() && b.is_integral())
    return by(a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) {
    auto wide = [](const Value &v) {
      return v.is_integral() ? static_cast<long double>(v.as_int()) : static_cast<long double>(v.as_double());
    };
    return by(wide(a), wide(b));
  }
  if (a.is_string() && b.is_string()) {
    charge_bytes(std::min(a.str().size(), b.str().size()));
    return by(a.str().compare(b.str()), 0); // UTF-8 sorts as code points do
  }
  if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    const auto &x = a.items(), &y = b.items();
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(x[i], y[i]))
        return ordered(op, x[i], y[i]);
    return by(x.size(), y.size());
  }
  static const char *const kSigns[] = {"<", "<=", ">", ">="};
  fail(std::string("'") + kSigns[static_cast<int>(op)] + "' not supported between instances of '" + type_name(a) +
       "' and '" + type_name(b) + "'");
}

size_t hash_value(const Value &v) {
  switch (v.kind()) {
  case Kind::boolean:
  case Kind::integer:
    return std::hash<double>{}(static_cast<double>(v.as_int()));
  case Kind::floating:
    return std::hash<double>{}(v.as_double());
  case Kind::string:
    charge_bytes(v.str().size());
    return std::hash<std::string_view>{}(v.str());
  case Kind::none:
  case Kind::undefined:
  case Kind::missing:
    return static_cast<size_t>(v.kind());
  case Kind::tuple: {
    size_t h = 0x345678;
    for (const auto &item : v.items())
      h = h * 1000003 ^ hash_value(item);
    return h;
  }
  case Kind::range:
    return v.as<RangeObject>().length;
  case Kind::list:
  case Kind::dict:
  case Kind::dict_view:
    fail(std::string("unhashable type: '") + type_name(v) + "'");
  default:
    return std::hash<const void *>{}(v.object().get());
  }
}

bool is_iterable(const Value &v) {
  switch (v.kind()) {
  case Kind::undefined:
  case Kind::string:
  case Kind::list:
  case Kind::tuple:
  case Kind::dict:
  case Kind::dict_view:
  case Kind::range:
  case Kind::iterator:
  case Kind::loop:
    return true;
  default:
    return false;
  }
}

Iterator::Next iterate(const Value &v) {
  switch (v.kind()) {
  case Kind::undefined:
    return [](Value &) { return false; };
  case Kind::string:
    return [v, at = size_t{0}](Value &out) mutable {
      const std::string &s = v.str();
      if (at >= s.size())
        return false;
      charge(1);
      size_t begin = at;
      next_code_point(s, at);
      out = Value::string(s.substr(begin, at - begin), v.str_object().markup);
      return true;
    };
  case Kind::list:
  case Kind::tuple:
    return [v, i = size_t{0}](Value &out) mutable {
      if (i >= v.items().size())
        return false;
      charge(1);
      out = v.items()[i++];
      return true;
    };
  case Kind::dict:
    return [v, i = size_t{0}](Value &out) mutable {
      if (i >= v.dict().items.size())
        return false;
      charge(1);
      out = v.dict().items[i++].first;
      return true;
    };
  case Kind::dict_view:
    return [v, i = size_t{0}](Value &out) mutable {
      const auto &view = v.as<DictView>();
      if (i >= view.dict.dict().items.size())
        return false;
      charge(1);
      out = view.at(i++);
      return true;
    };
  case Kind::range:
    return [v, i = size_t{0}](Value &out) mutable {
      const auto &range = v.as<RangeObject>();
      if (i >= range.length)
        return false;
      charge(1);
      out = Value::integer(range.start + static_cast<Int>(i++) * range.step);
      return true;
    };
  case Kind::iterator:
    return [v](Value &out) {
      charge(1);
      return v.as<Iterator>().next(out);
    };
  case Kind::loop:
    return [v](Value &out) {
      Value item;
      if (!v.as<LoopObject>().next(item))
        return false;
      out = Value::tuple({item, v});
      return true;
    };
  default:
    fail(std::string("'") + type_name(v) + "' object is not iterable");
  }
}

std::vector<Value> to_vector(const Value &v) {
  if (v.is(Kind::list) || v.is(Kind::tuple)) {
    charge(static_cast<int64_t>(v.items().size()));
    return v.items();
  }
  std::vector<Value> out;
  auto next = iterate(v);
  for (Value item; next(item);) {
    if ((out.size() & 1023) == 1023)
      check_memory(out.size() * sizeof(Value));
    out.push_back(item);
  }
  return out;
}

bool contains(const Value &container, const Value &item) {
  switch (container.kind()) {
  case Kind::string: {
    if (item.is_undefined())
      fail("'in <string>' requires string as left operand, not Undefined");
    if (!item.is_string())
      fail(std::string("'in <string>' requires string as left operand, not ") + type_name(item));
    const std::string &s = container.str(), &part = item.str();
    charge_bytes(s.size() + part.size());
    return part.empty() || memmem(s.data(), s.size(), part.data(), part.size()) != nullptr;
  }
  case Kind::dict:
    return container.dict().find(item) != nullptr;
  case Kind::dict_view:
    if (const auto &view = container.as<DictView>(); view.what == DictView::What::keys)
      return view.dict.dict().find(item) != nullptr;
    break;
  case Kind::range: {
    const auto &range = container.as<RangeObject>();
    if (item.is_integral()) {
      Int offset = item.as_int() - range.start;
      return offset % range.step == 0 && offset / range.step >= 0 &&
             offset / range.step < static_cast<Int>(range.length);
    }
    break;
  }
  case Kind::undefined:
    return false;
  default:
    if (!is_iterable(container))
      fail(std::string("argument of type '") + type_name(container) + "' is not iterable");
  }
  auto next = iterate(container);
  for (Value v; next(v);)
    if (equal(v, item))
      return true;
  return false;
}

} // namespace llmrt::text::jinja
