// Filters over sequences and mappings. Those that are generators in Jinja are lazy one-shot iterators here too:
// always true, without a length, empty once read.
#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/unicode.h"

#include <algorithm>

namespace llmrt::text::jinja {

namespace {

Value lazy(const Value &source, Iterator::Next next) {
  return Value(Kind::iterator, std::make_shared<Iterator>(std::move(next), nesting_of(source)));
}

// "a.b.0" as the keys to look up one after the other. An integer is a key by itself, none is the item itself.
std::vector<Value> attribute_path(const Value &attribute) {
  std::vector<Value> path;
  if (attribute.is_missing() || attribute.is_none())
    return path;
  if (!attribute.is_string())
    return {attribute};
  std::string_view text = attribute.str();
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find('.', begin), text.size());
    std::string part(text.substr(begin, end - begin));
    if (!part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == std::string::npos)
      path.push_back(Value::integer(std::stoll(part)));
    else
      path.push_back(Value::string(std::move(part)));
    begin = end + 1;
  }
  return path;
}

Value ignore_case(const Value &v) { return v.is_string() ? Value::string(to_lower(v.str())) : v; }

Value get_attribute(Interpreter &interpreter, Value item, const std::vector<Value> &path, const Value &fallback) {
  for (const auto &part : path) {
    item = interpreter.item(item, part);
    if (item.is_undefined() && !fallback.is_missing() && !fallback.is_none())
      item = fallback;
  }
  return item;
}

Value optional(const Bound &bound, size_t i) { return bound.has(i) ? bound[i] : Value::missing(); }

Value length(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("length", arguments, {}, 0);
  auto n = length_of(input);
  if (!n)
    fail(std::string("object of type '") + type_name(input) + "' has no len()");
  return Value::integer(static_cast<Int>(*n));
}

Value list(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("list", arguments, {}, 0);
  return Value::list(to_vector(input));
}

Value first(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("first", arguments, {}, 0);
  Value item;
  if (iterate(input)(item))
    return item;
  return Value::undefined_hint("No first item, sequence was empty.");
}

bool is_reversible(const Value &v) {
  switch (v.kind()) {
  case Kind::string:
  case Kind::list:
  case Kind::tuple:
  case Kind::dict:
  case Kind::dict_view:
  case Kind::range:
  case Kind::undefined:
    return true;
  default:
    return false;
  }
}

Value last(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("last", arguments, {}, 0);
  if (!is_reversible(input))
    fail(std::string("'") + type_name(input) + "' object is not reversible");
  if (input.is_string() || input.is(Kind::list) || input.is(Kind::tuple) || input.is(Kind::range)) {
    if (Value item = at_index(input, -1); !item.is_missing())
      return item;
  } else if (auto items = to_vector(input); !items.empty()) {
    return items.back();
  }
  return Value::undefined_hint("No last item, sequence was empty.");
}

Value reverse(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("reverse", arguments, {}, 0);
  if (input.is_string())
    return slice(input, Value(), Value(), Value::integer(-1));
  if (!is_iterable(input))
    fail("argument must be iterable");
  auto items = to_vector(input);
  std::reverse(items.begin(), items.end());
  Value reversed = Value::list(std::move(items));
  return is_reversible(input) ? lazy(reversed, iterate(reversed)) : reversed;
}

Value join(Interpreter &interpreter, const Value &input, Arguments &arguments) {
  Bound bound("join", arguments, {"d", "attribute"}, 0);
  std::string separator = bound.has(0) ? to_str(bound[0]) : "", out;
  auto path = attribute_path(optional(bound, 1));
  auto next = iterate(input);
  bool is_first = true;
  for (Value item; next(item);) {
    std::string text = to_str(get_attribute(interpreter, item, path, Value::missing()));
    check_memory(out.size() + text.size() + separator.size());
    charge_bytes(text.size() + separator.size());
    if (!is_first)
      out += separator;
    is_first = false;
    out += text;
  }
  return Value::string(std::move(out));
}

Value default_value(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("default", arguments, {"default_value", "boolean"}, 0);
  if (input.is_undefined() || (bound.flag(1) && !truthy(input)))
    return bound.has(0) ? bound[0] : Value::string({});
  return input;
}

Value items(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("items", arguments, {}, 0);
  // The complaint comes when the items are asked for, as from a generator.
  return lazy(input, [input, source = Iterator::Next()](Value &out) mutable {
    if (!source) {
      if (!input.is_undefined() && !input.is(Kind::dict))
        fail("Can only get item pairs from a mapping.");
      source = input.is_undefined()
                   ? iterate(input)
                   : iterate(Value(Kind::dict_view, std::make_shared<DictView>(input, DictView::What::items)));
    }
    return source(out);
  });
}

// Sorts by keys computed once per item.
std::vector<Value> sorted_by(std::vector<Value> values, const std::vector<Value> &keys, bool is_reverse) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return is_reverse ? ordered(Order::lt, keys[b], keys[a]) : ordered(Order::lt, keys[a], keys[b]);
  });
  std::vector<Value> out;
  out.reserve(values.size());
  for (size_t i : order)
    out.push_back(std::move(values[i]));
  return out;
}

Value sort(Interpreter &interpreter, const Value &input, Arguments &arguments) {
  Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  bool case_sensitive = bound.flag(1);
  std::vector<std::vector<Value>> paths;
  if (Value attribute = optional(bound, 2); attribute.is_string()) {
    std::string_view text = attribute.str();
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      paths.push_back(attribute_path(Value::string(std::string(text.substr(begin, end - begin)))));
      begin = end + 1;
    }
  } else {
    paths.push_back(attribute_path(attribute));
  }
  auto values = to_vector(input);
  std::vector<Value> keys;
  for (const auto &value : values) {
    std::vector<Value> key;
    for (const auto &path : paths) {
      Value part = get_attribute(interpreter, value, path, Value::missing());
      key.push_back(case_sensitive ? part : ignore_case(part));
    }
    keys.push_back(Value::list(std::move(key)));
  }
  return Value::list(sorted_by(std::move(values), keys, bound.flag(0)));
}

Value dict_sort(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  std::string by = bound.has(1) ? require_string(bound[1], "dictsort") : "key";
  if (by != "key" && by != "value")
    fail("You can only sort by either \"key\" or \"value\"");
  require_defined(input);
  if (!input.is(Kind::dict))
    fail(std::string("'") + type_name(input) + "' object has no attribute 'items'");
  std::vector<Value> pairs, keys;
  for (const auto &[key, value] : input.dict().items) {
    pairs.push_back(Value::tuple({key, value}));
    const Value &chosen = by == "key" ? key : value;
    keys.push_back(bound.flag(0) ? chosen : ignore_case(chosen));
  }
  return Value::list(sorted_by(std::move(pairs), keys, bound.flag(2)));
}

Value unique(Interpreter &interpreter, const Value &input, Arguments &arguments) {
  Bound bound("unique", arguments, {"case_sensitive", "attribute"}, 0);
  return lazy(input, [&interpreter, case_sensitive = bound.flag(0), path = attribute_path(optional(bound, 1)), input,
                      source = Iterator::Next(), seen = std::make_shared<Dict>()](Value &out) mutable {
    if (!source)
      source = iterate(input);
    for (Value item; source(item);) {
      Value key = get_attribute(interpreter, item, path, Value::missing());
      if (!case_sensitive)
        key = ignore_case(key);
      if (seen->find(key))
        continue;
      seen->set(key, Value());
      out = item;
      return true;
    }
    return false;
  });
}

Value extreme(Interpreter &interpreter, const Value &input, Arguments &arguments, const char *name, Order better) {
  Bound bound(name, arguments, {"case_sensitive", "attribute"}, 0);
  auto path = attribute_path(optional(bound, 1));
  auto key_of = [&](const Value &item) {
    Value key = get_attribute(interpreter, item, path, Value::missing());
    return bound.flag(0) ? key : ignore_case(key);
  };
  auto next = iterate(input);
  Value best;
  if (!next(best))
    return Value::undefined_hint("No aggregated item, sequence was empty.");
  Value best_key = key_of(best);
  for (Value item; next(item);) {
    Value key = key_of(item);
    if (ordered(better, key, best_key)) {
      best = item;
      best_key = key;
    }
  }
  return best;
}

Value sum(Interpreter &interpreter, const Value &input, Arguments &arguments) {
  Bound bound("sum", arguments, {"attribute", "start"}, 0);
  auto path = attribute_path(optional(bound, 0));
  Value total = bound.or_else(1, Value::integer(0));
  if (total.is_string())
    fail("sum() can't sum strings [use ''.join(seq) instead]");
  auto next = iterate(input);
  for (Value item; next(item);)
    total = binary("+", total, get_attribute(interpreter, item, path, Value::missing()));
  return total;
}

Value batch(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("batch", arguments, {"linecount", "fill_with"}, 1);
  return lazy(input, [input, count = bound[0], fill = bound.or_else(1, Value()), source = Iterator::Next(),
                      pending = Value::missing()](Value &out) mutable {
    if (!source)
      source = iterate(input);
    int64_t n = to_index(count, "linecount");
    std::vector<Value> line;
    if (!pending.is_missing())
      line.push_back(std::exchange(pending, Value::missing()));
    for (Value item; source(item);) {
      if (static_cast<int64_t>(line.size()) == n) {
        pending = item;
        out = Value::list(std::move(line));
        return true;
      }
      line.push_back(item);
    }
    if (line.empty())
      return false;
    if (!fill.is_none() && static_cast<int64_t>(line.size()) < n) {
      check_memory(static_cast<size_t>(n) * sizeof(Value));
      line.resize(static_cast<size_t>(n), fill);
    }
    out = Value::list(std::move(line));
    return true;
  });
}

Value slices(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("slice", arguments, {"slices", "fill_with"}, 1);
  return lazy(input, [input, count = bound[0], fill = bound.or_else(1, Value()), all = std::vector<Value>(),
                      started = false, number = int64_t{0}](Value &out) mutable {
    int64_t n = to_index(count, "slices");
    if (!started) {
      all = to_vector(input);
      started = true;
      if (n == 0)
        fail("integer division or modulo by zero");
    }
    if (number >= n)
      return false;
    auto total = static_cast<int64_t>(all.size());
    int64_t each = total / n, extra = total % n;
    int64_t begin = number * each + std::min(number, extra), end = begin + each + (number < extra ? 1 : 0);
    std::vector<Value> part(all.begin() + begin, all.begin() + end);
    if (!fill.is_none() && number >= extra)
      part.push_back(fill);
    ++number;
    out = Value::list(std::move(part));
    return true;
  });
}

Value group_by(Interpreter &interpreter, const Value &input, Arguments &arguments) {
  Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  auto path = attribute_path(bound[0]);
  bool case_sensitive = bound.flag(2);
  auto key_of = [&](const Value &item) {
    Value key = get_attribute(interpreter, item, path, optional(bound, 1));
    return case_sensitive ? key : ignore_case(key);
  };
  auto values = to_vector(input);
  std::vector<Value> keys;
  for (const auto &value : values)
    keys.push_back(key_of(value));
  values = sorted_by(std::move(values), keys, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < values.size();) {
    Value key = key_of(values[begin]);
    size_t end = begin + 1;
    while (end < values.size() && equal(key_of(values[end]), key))
      ++end;
    Value label = get_attribute(interpreter, values[begin], path, optional(bound, 1));
    auto first_item = values.begin() + static_cast<ptrdiff_t>(begin);
    groups.push_back(Value::tuple(
        {label, Value::list({first_item, values.begin() + static_cast<ptrdiff_t>(end)})}, true));
    begin = end;
  }
  return Value::list(std::move(groups));
}

Value attribute_filter(Interpreter &interpreter, const Value &input, Arguments &arguments) {
  Bound bound("attr", arguments, {"name"}, 1);
  const std::string &name = require_string(bound[0], "attr");
  require_defined(input);
  Value found = find_attribute(input, name);
  if (!found.is_missing())
    return interpreter.attribute(input, name);
  return Value::undefined_hint(repr(Value::string(object_type_repr(input))) + " has no attribute " + repr(bound[0]));
}

Value map(Interpreter &interpreter, const Value &input, Arguments &arguments) {
  return lazy(input, [&interpreter, input, call = arguments, source = Iterator::Next()](Value &out) mutable {
    if (!source) {
      if (!truthy(input))
        return false;
      source = iterate(input);
    }
    Value item;
    if (call.positional.empty() && !call.named.empty()) {
      Bound bound("map", call, {"attribute", "default"}, 1);
      if (!source(item))
        return false;
      out = get_attribute(interpreter, item, attribute_path(bound[0]), optional(bound, 1));
      return true;
    }
    if (call.positional.empty())
      fail("map requires a filter argument");
    if (!source(item))
      return false;
    Arguments rest{{call.positional.begin() + 1, call.positional.end()}, call.named};
    out = interpreter.filter(require_string(call.positional[0], "map"), item, rest);
    return true;
  });
}

Value select(Interpreter &interpreter, const Value &input, Arguments &arguments, bool keep, bool by_attribute) {
  return lazy(input, [&interpreter, input, call = arguments, keep, by_attribute,
                      source = Iterator::Next()](Value &out) mutable {
    if (!source) {
      if (!truthy(input))
        return false;
      source = iterate(input);
    }
    size_t used = by_attribute ? 1 : 0;
    if (call.positional.size() < used)
      fail("Missing parameter for attribute name");
    for (Value item; source(item);) {
      Value subject = by_attribute
                          ? get_attribute(interpreter, item, attribute_path(call.positional[0]), Value::missing())
                          : item;
      bool passes;
      if (call.positional.size() > used) {
        Arguments rest{{call.positional.begin() + static_cast<ptrdiff_t>(used) + 1, call.positional.end()}, call.named};
        passes = interpreter.test(require_string(call.positional[used], "a test name"), subject, rest);
      } else {
        passes = truthy(subject);
      }
      if (passes == keep) {
        out = item;
        return true;
      }
    }
    return false;
  });
}

const NamedFilter kFilters[] = {
    {"attr", attribute_filter},
    {"batch", batch},
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", dict_sort},
    {"first", first},
    {"groupby", group_by},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", list},
    {"map", map},
    {"max", [](Interpreter &i, const Value &v, Arguments &a) { return extreme(i, v, a, "max", Order::gt); }},
    {"min", [](Interpreter &i, const Value &v, Arguments &a) { return extreme(i, v, a, "min", Order::lt); }},
    {"reject", [](Interpreter &i, const Value &v, Arguments &a) { return select(i, v, a, false, false); }},
    {"rejectattr", [](Interpreter &i, const Value &v, Arguments &a) { return select(i, v, a, false, true); }},
    {"reverse", reverse},
    {"select", [](Interpreter &i, const Value &v, Arguments &a) { return select(i, v, a, true, false); }},
    {"selectattr", [](Interpreter &i, const Value &v, Arguments &a) { return select(i, v, a, true, true); }},
    {"slice", slices},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

} // namespace

FilterTable sequence_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

FilterFunction find_filter(const std::string &name) {
  for (FilterTable table : {sequence_filters(), text_filters(), number_filters()})
    for (const auto *it = table.begin; it != table.end; ++it)
      if (name == it->name)
        return it->function;
  return nullptr;
}

} // namespace llmrt::text::jinja
