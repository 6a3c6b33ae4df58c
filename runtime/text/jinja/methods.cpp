// Attributes of everything but strings, whose methods are in string_methods.cpp.
#include "runtime/text/jinja/methods.h"

#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/ast.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace llmrt::text::jinja {

Value make_function(std::string name, Function::Body body) {
  return Value(Kind::function, std::make_shared<Function>(std::move(name), std::move(body)));
}

namespace {

bool one_of(const std::string &name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value unsafe(const Value &object, const std::string &name) {
  return Value::undefined_hint("access to attribute " + repr(Value::string(name)) + " of " +
                                   repr(Value::string(type_name(object))) + " object is unsafe.",
                               true);
}

Value index_in(const Value &sequence, Arguments &arguments) {
  if (arguments.positional.empty() || arguments.positional.size() > 3 || !arguments.named.empty())
    fail("index expected from 1 to 3 arguments");
  const auto &items = sequence.items();
  auto bound = [&](size_t i, int64_t fallback) {
    int64_t v = arguments.positional.size() > i ? to_index(arguments.positional[i], "a bound of index()") : fallback;
    auto n = static_cast<int64_t>(items.size());
    return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n);
  };
  int64_t end = bound(2, static_cast<int64_t>(items.size()));
  for (int64_t i = bound(1, 0); i < end; ++i)
    if (equal(items[static_cast<size_t>(i)], arguments.positional[0]))
      return Value::integer(i);
  fail(repr(arguments.positional[0]) + " is not in " + type_name(sequence));
}

Value count_in(const Value &sequence, Arguments &arguments) {
  Bound bound("count", arguments, {"value"}, 1);
  int64_t n = 0;
  for (const auto &item : sequence.items())
    n += equal(item, bound[0]);
  return Value::integer(n);
}

Value sequence_attribute(const Value &object, const std::string &name) {
  if (name == "index")
    return make_function(name, [object](Interpreter &, Arguments &a) { return index_in(object, a); });
  if (name == "count")
    return make_function(name, [object](Interpreter &, Arguments &a) { return count_in(object, a); });
  if (object.is(Kind::tuple)) {
    if (object.as<List>().group && (name == "grouper" || name == "list"))
      return object.items()[name == "list" ? 1 : 0];
    return Value::missing();
  }
  if (name == "copy")
    return make_function(name, [object](Interpreter &, Arguments &a) {
      Bound bound("copy", a, {}, 0);
      return Value::list(object.items());
    });
  if (one_of(name, {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"}))
    return unsafe(object, name);
  return Value::missing();
}

Value view(const Value &dict, DictView::What what) {
  return Value(Kind::dict_view, std::make_shared<DictView>(dict, what));
}

Value dict_attribute(const Value &object, const std::string &name) {
  auto make_view = [&](DictView::What what) {
    return make_function(name, [object, what, name](Interpreter &, Arguments &a) {
      Bound bound(name, a, {}, 0);
      return view(object, what);
    });
  };
  if (name == "items")
    return make_view(DictView::What::items);
  if (name == "keys")
    return make_view(DictView::What::keys);
  if (name == "values")
    return make_view(DictView::What::values);
  if (name == "get")
    return make_function(name, [object](Interpreter &, Arguments &a) {
      if (a.positional.empty() || a.positional.size() > 2 || !a.named.empty())
        fail("get expected 1 or 2 positional arguments");
      if (const Value *found = object.dict().find(a.positional[0]))
        return *found;
      return a.positional.size() > 1 ? a.positional[1] : Value();
    });
  if (name == "copy")
    return make_function(name, [object](Interpreter &, Arguments &a) {
      Bound bound("copy", a, {}, 0);
      return object; // nothing can tell a copy of an immutable dict from itself
    });
  if (name == "fromkeys")
    return make_function(name, [](Interpreter &, Arguments &a) {
      Bound bound("fromkeys", a, {"iterable", "value"}, 1);
      auto dict = std::make_shared<Dict>();
      for (const auto &key : to_vector(bound[0]))
        dict->set(key, bound.or_else(1, Value()));
      return Value(Kind::dict, dict);
    });
  if (one_of(name, {"clear", "pop", "popitem", "setdefault", "update"}))
    return unsafe(object, name);
  return Value::missing();
}

Value number_attribute(const Value &object, const std::string &name) {
  if (name == "real")
    return object;
  if (name == "imag")
    return object.is(Kind::floating) ? Value::floating(0) : Value::integer(0);
  if (object.is(Kind::floating)) {
    if (name == "is_integer")
      return make_function(name, [object](Interpreter &, Arguments &a) {
        Bound bound("is_integer", a, {}, 0);
        double d = object.as_double();
        return Value::boolean(std::isfinite(d) && std::floor(d) == d);
      });
    return Value::missing();
  }
  if (name == "numerator")
    return object;
  if (name == "denominator")
    return Value::integer(1);
  if (name == "bit_length")
    return make_function(name, [object](Interpreter &, Arguments &a) {
      Bound bound("bit_length", a, {}, 0);
      Int i = object.as_int();
      int bits = 0;
      for (auto u = i < 0 ? -static_cast<unsigned __int128>(i) : static_cast<unsigned __int128>(i); u; u >>= 1)
        ++bits;
      return Value::integer(bits);
    });
  return Value::missing();
}

Value loop_attribute(const Value &object, const std::string &name) {
  auto &loop = object.as<LoopObject>();
  if (name == "index")
    return Value::integer(loop.index0 + 1);
  if (name == "index0")
    return Value::integer(loop.index0);
  if (name == "first")
    return Value::boolean(loop.index0 == 0);
  if (name == "last")
    return Value::boolean(!loop.has_next());
  if (name == "length")
    return Value::integer(static_cast<Int>(loop.length()));
  if (name == "revindex")
    return Value::integer(static_cast<Int>(loop.length()) - loop.index0);
  if (name == "revindex0")
    return Value::integer(static_cast<Int>(loop.length()) - loop.index0 - 1);
  if (name == "depth")
    return Value::integer(loop.depth0 + 1);
  if (name == "depth0")
    return Value::integer(loop.depth0);
  if (name == "previtem")
    return loop.index0 == 0 ? Value::undefined_hint("there is no previous item") : loop.before;
  if (name == "nextitem")
    return loop.has_next() ? loop.after : Value::undefined_hint("there is no next item");
  if (name == "cycle")
    return make_function(name, [object](Interpreter &, Arguments &a) {
      if (a.positional.empty())
        fail("no items for cycling given");
      return a.positional[static_cast<size_t>(object.as<LoopObject>().index0) % a.positional.size()];
    });
  if (name == "changed")
    return make_function(name, [object](Interpreter &, Arguments &a) {
      auto &l = object.as<LoopObject>();
      Value now = Value::tuple(a.positional);
      if (!l.last_changed.is_missing() && equal(l.last_changed, now))
        return Value::boolean(false);
      l.last_changed = now;
      return Value::boolean(true);
    });
  return Value::missing();
}

Value macro_attribute(const Value &object, const std::string &name) {
  const Node &node = *object.as<MacroObject>().node;
  if (name == "name")
    return node.text.empty() ? Value() : Value::string(node.text);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const Node *parameter : node.parameters)
      names.push_back(Value::string(parameter->text));
    return Value::tuple(std::move(names));
  }
  if (name == "catch_kwargs")
    return Value::boolean(node.uses_kwargs);
  if (name == "catch_varargs")
    return Value::boolean(node.uses_varargs);
  if (name == "caller")
    return Value::boolean(node.uses_caller);
  return Value::missing();
}

Value cycler_attribute(const Value &object, const std::string &name) {
  if (name == "current")
    return object.as<Cycler>().items[object.as<Cycler>().position];
  if (name == "next")
    return make_function(name, [object](Interpreter &, Arguments &) {
      auto &cycler = object.as<Cycler>();
      Value v = cycler.items[cycler.position];
      cycler.position = (cycler.position + 1) % cycler.items.size();
      return v;
    });
  if (name == "reset")
    return make_function(name, [object](Interpreter &, Arguments &) {
      object.as<Cycler>().position = 0;
      return Value();
    });
  if (name == "items")
    return Value::tuple(object.as<Cycler>().items);
  return Value::missing();
}

Value any_attribute(const Value &object, const std::string &name) {
  switch (object.kind()) {
  case Kind::string:
    return string_method(object, name);
  case Kind::list:
  case Kind::tuple:
    return sequence_attribute(object, name);
  case Kind::dict:
    return dict_attribute(object, name);
  case Kind::boolean:
  case Kind::integer:
  case Kind::floating:
    return number_attribute(object, name);
  case Kind::loop:
    return loop_attribute(object, name);
  case Kind::macro:
    return macro_attribute(object, name);
  case Kind::cycler:
    return cycler_attribute(object, name);
  case Kind::name_space: {
    const Value *found = object.as<Namespace>().find(name);
    return found ? *found : Value::missing();
  }
  case Kind::range: {
    const auto &range = object.as<RangeObject>();
    if (one_of(name, {"start", "stop", "step"}))
      return Value::integer(name == "start" ? range.start : name == "stop" ? range.stop : range.step);
    return Value::missing();
  }
  case Kind::joiner:
    if (name == "sep")
      return object.as<Joiner>().separator;
    if (name == "used")
      return Value::boolean(object.as<Joiner>().used);
    return Value::missing();
  case Kind::function:
    if (object.as<Function>().name == "dict" && name == "fromkeys")
      return dict_attribute(object, name);
    return Value::missing();
  default:
    return Value::missing();
  }
}

} // namespace

Value find_attribute(const Value &object, const std::string &name) {
  Value value = any_attribute(object, name);
  if (!value.is_missing())
    return value;
  // What every Python object has is there, and refused.
  if (!object.is(Kind::name_space) &&
      one_of(name, {"__class__", "__dict__", "__doc__", "__init__", "__new__", "__reduce__", "__hash__", "__str__",
                    "__repr__", "__eq__", "__dir__", "__getattribute__", "__subclasshook__", "__module__"}))
    return unsafe(object, name);
  return Value::missing();
}

} // namespace llmrt::text::jinja
