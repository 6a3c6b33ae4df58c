// Evaluation of expressions, calls and macros.
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/interpreter_guards.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"

#include <algorithm>

namespace llmrt::text::jinja {

Value Interpreter::eval(const Node &node) {
  DepthGuard depth(*this);
  charge(1);
  switch (node.kind) {
  case NodeKind::constant:
    return node.value;
  case NodeKind::name:
    return eval_name(node);
  case NodeKind::tuple:
  case NodeKind::list:
    return eval_sequence(node);
  case NodeKind::dict:
    return eval_dict(node);
  case NodeKind::conditional:
    if (truthy(eval(*node.a)))
      return eval(*node.b);
    if (node.c)
      return eval(*node.c);
    return Value::undefined_hint("the inline if-expression on line " + std::to_string(node.line) +
                                 " evaluated to false and no else section was defined.");
  case NodeKind::filter:
    return eval_filter(node, nullptr);
  case NodeKind::test:
    return eval_test(node);
  case NodeKind::call:
    return eval_call(node, nullptr);
  case NodeKind::attribute: {
    Value object = eval(*node.a);
    Budget::current->line = node.line;
    return attribute(object, node.text);
  }
  case NodeKind::item:
    if (node.b->kind == NodeKind::slice)
      return eval_slice(node);
    {
      Value object = eval(*node.a), key = eval(*node.b);
      Budget::current->line = node.line;
      return item(object, key);
    }
  case NodeKind::concat:
    return eval_concat(node);
  case NodeKind::compare:
    return eval_compare(node);
  case NodeKind::binary: {
    Value left = eval(*node.a), right = eval(*node.b);
    Budget::current->line = node.line;
    return binary(node.text, left, right);
  }
  case NodeKind::logical_and: {
    Value left = eval(*node.a);
    return truthy(left) ? eval(*node.b) : left;
  }
  case NodeKind::logical_or: {
    Value left = eval(*node.a);
    return truthy(left) ? left : eval(*node.b);
  }
  case NodeKind::logical_not:
    return Value::boolean(!truthy(eval(*node.a)));
  case NodeKind::negative:
    return jinja::negative(eval(*node.a));
  case NodeKind::positive:
    return jinja::positive(eval(*node.a));
  default:
    fail("this expression cannot stand here");
  }
}

Value Interpreter::eval_name(const Node &node) {
  const Value *value = slot(node.ref);
  return value->is_missing() ? Value::undefined_name(node.text) : *value;
}

Value Interpreter::eval_sequence(const Node &node) {
  std::vector<Value> items;
  items.reserve(node.list.size());
  for (const Node *child : node.list)
    items.push_back(eval(*child));
  return node.kind == NodeKind::list ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Value Interpreter::eval_dict(const Node &node) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i + 1 < node.list.size(); i += 2) {
    Value key = eval(*node.list[i]);
    dict->set(key, eval(*node.list[i + 1]));
  }
  return Value(Kind::dict, dict);
}

Value Interpreter::eval_concat(const Node &node) {
  std::string text;
  for (const Node *child : node.list) {
    std::string part = to_str(eval(*child));
    check_memory(text.size() + part.size());
    text += part;
  }
  return Value::string(std::move(text));
}

Value Interpreter::eval_compare(const Node &node) {
  Value left = eval(*node.a);
  for (size_t i = 0; i < node.list.size(); ++i) {
    Value right = eval(*node.list[i]);
    Budget::current->line = node.line;
    const std::string &op = node.ops[i];
    bool holds;
    if (op == "==")
      holds = equal(left, right);
    else if (op == "!=")
      holds = !equal(left, right);
    else if (op == "in")
      holds = contains(right, left);
    else if (op == "not in")
      holds = !contains(right, left);
    else
      holds = ordered(op == "<" ? Order::lt : op == "<=" ? Order::le : op == ">" ? Order::gt : Order::ge, left, right);
    if (!holds)
      return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::eval_slice(const Node &node) {
  Value object = eval(*node.a);
  auto bound = [this](const Node *part) { return part ? eval(*part) : Value(); };
  Value start = bound(node.b->a), stop = bound(node.b->b), step = bound(node.b->c);
  Budget::current->line = node.line;
  return slice(object, start, stop, step);
}

void Interpreter::eval_arguments(const Node &node, Arguments &arguments) {
  for (const Node *argument : node.list)
    arguments.positional.push_back(eval(*argument));
  for (const Node *keyword : node.named)
    arguments.named.emplace_back(keyword->text, eval(*keyword->a));
  if (node.b)
    for (auto &value : to_vector(eval(*node.b)))
      arguments.positional.push_back(std::move(value));
  if (node.c) {
    Value extra = eval(*node.c);
    if (!extra.is(Kind::dict))
      fail(std::string("argument after ** must be a mapping, not ") + type_name(extra));
    for (const auto &[key, value] : extra.dict().items)
      arguments.named.emplace_back(require_key(key), value);
  }
}

Value Interpreter::eval_filter(const Node &node, const Value *input) {
  // A chain of filters in a filter block starts from the block's text.
  Value value = node.a ? (node.a->kind == NodeKind::filter && input ? eval_filter(*node.a, input) : eval(*node.a))
                       : *input;
  Arguments arguments;
  eval_arguments(node, arguments);
  Budget::current->line = node.line;
  return filter(node.text, value, arguments);
}

Value Interpreter::eval_test(const Node &node) {
  Value value = eval(*node.a);
  Arguments arguments;
  eval_arguments(node, arguments);
  Budget::current->line = node.line;
  return Value::boolean(test(node.text, value, arguments));
}

Value Interpreter::filter(const std::string &name, const Value &input, Arguments &arguments) {
  FilterFunction function = find_filter(name);
  if (!function)
    fail("No filter named '" + name + "' found.");
  return function(*this, input, arguments);
}

bool Interpreter::test(const std::string &name, const Value &input, Arguments &arguments) {
  TestFunction function = find_test(name);
  if (!function)
    fail("No test named '" + name + "' found.");
  return function(*this, input, arguments);
}

Value Interpreter::eval_call(const Node &node, const Value *caller) {
  Value callee = eval(*node.a);
  Arguments arguments;
  eval_arguments(node, arguments);
  if (caller)
    arguments.named.emplace_back("caller", *caller);
  Budget::current->line = node.line;
  return call(callee, arguments);
}

Value Interpreter::call(const Value &callee, Arguments &arguments) {
  switch (callee.kind()) {
  case Kind::undefined:
    fail_undefined(callee);
  case Kind::function:
    return callee.as<Function>().body(*this, arguments);
  case Kind::macro:
    return call_macro(callee.as<MacroObject>(), arguments);
  case Kind::joiner: {
    auto &joiner = callee.as<Joiner>();
    if (joiner.used)
      return joiner.separator;
    joiner.used = true;
    return Value::string({});
  }
  case Kind::loop: {
    auto &loop = callee.as<LoopObject>();
    if (!loop.recursive_node)
      fail("The loop must have the 'recursive' marker to be called recursively.");
    if (arguments.positional.size() != 1 || !arguments.named.empty())
      fail("a recursive loop is called with one iterable");
    DepthGuard depth(*this);
    std::string text;
    OutputGuard output(*this, text);
    ScopeGuard scope(*this, loop.scope);
    for_loop(*loop.recursive_node, arguments.positional[0], loop.depth0 + 1);
    return Value::string(std::move(text));
  }
  default:
    fail(std::string("'") + type_name(callee) + "' object is not callable");
  }
}

Value Interpreter::make_macro(const Node &node) {
  if (captured_scopes_.empty() || captured_scopes_.back() != scope_)
    captured_scopes_.push_back(scope_);
  return Value(Kind::macro, std::make_shared<MacroObject>(&node, scope_));
}

Value Interpreter::call_macro(const MacroObject &macro, Arguments &arguments) {
  const Node &node = *macro.node;
  const std::string name = "macro " + (node.text.empty() ? "None" : "'" + node.text + "'");
  auto scope = std::make_shared<Scope>(node.frame, macro.closure);
  auto set = [&](const std::string &variable, Value value) {
    scope->slots[static_cast<size_t>(node.frame.slot_of(variable))] = std::move(value);
  };
  auto take_named = [&](const std::string &key) {
    for (auto it = arguments.named.begin(); it != arguments.named.end(); ++it)
      if (it->first == key) {
        Value value = std::move(it->second);
        arguments.named.erase(it);
        return value;
      }
    return Value::missing();
  };
  size_t count = node.parameters.size(), given = std::min(arguments.positional.size(), count);
  for (size_t i = 0; i < given; ++i)
    set(node.parameters[i]->text, arguments.positional[i]);
  bool explicit_caller = false;
  for (size_t i = 0; i < count; ++i) {
    const std::string &parameter = node.parameters[i]->text;
    explicit_caller = explicit_caller || parameter == "caller";
    if (i >= given)
      set(parameter, take_named(parameter));
  }
  if (node.uses_caller && !explicit_caller) {
    Value caller = take_named("caller");
    if (caller.is_missing() || caller.is_none())
      caller = Value::undefined_hint("No caller defined");
    set("caller", std::move(caller));
  }
  if (node.uses_kwargs) {
    auto rest = std::make_shared<Dict>();
    for (auto &[key, value] : arguments.named)
      rest->set(Value::string(key), value);
    set("kwargs", Value(Kind::dict, rest));
  } else if (!arguments.named.empty()) {
    fail(name + " takes no keyword argument '" + arguments.named.front().first + "'");
  }
  if (node.uses_varargs) {
    auto first = arguments.positional.begin() + static_cast<ptrdiff_t>(given);
    set("varargs", Value::tuple({first, arguments.positional.end()}));
  } else if (arguments.positional.size() > count) {
    fail(name + " takes not more than " + std::to_string(count) + " argument(s)");
  }

  DepthGuard depth(*this);
  start_variables(*scope);
  ScopeGuard guard(*this, scope);
  size_t first_default = count - node.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string &parameter = node.parameters[i]->text;
    if (!scope->slots[static_cast<size_t>(node.frame.slot_of(parameter))].is_missing())
      continue;
    set(parameter, i >= first_default ? eval(*node.defaults[i - first_default])
                                      : Value::undefined_hint("parameter '" + parameter + "' was not provided"));
  }
  std::string text;
  {
    OutputGuard output(*this, text);
    statements(node.body);
  }
  return Value::string(std::move(text));
}

// --- attributes and items ---

Value Interpreter::attribute(const Value &object, const std::string &name) {
  require_defined(object);
  Value value = find_attribute(object, name);
  if (!value.is_missing())
    return value;
  if (object.is(Kind::dict))
    if (const Value *found = object.dict().find(std::string_view(name)))
      return *found;
  return Value::undefined_hint(repr(Value::string(object_type_repr(object))) + " has no attribute " +
                               repr(Value::string(name)));
}

Value Interpreter::item(const Value &object, const Value &key) {
  require_defined(object);
  switch (object.kind()) {
  case Kind::dict:
    if (!key.is(Kind::list) && !key.is(Kind::dict))
      if (const Value *found = object.dict().find(key))
        return *found;
    break;
  case Kind::string:
  case Kind::list:
  case Kind::tuple:
  case Kind::range:
    if (key.is_integral())
      if (Value found = at_index(object, key.as_int()); !found.is_missing())
        return found;
    break;
  default:
    break;
  }
  if (key.is_string())
    if (Value value = find_attribute(object, key.str()); !value.is_missing())
      return value;
  if (key.is_string())
    return Value::undefined_hint(repr(Value::string(object_type_repr(object))) + " has no attribute " + repr(key));
  return Value::undefined_hint(object_type_repr(object) + " has no element " + repr(key));
}

} // namespace llmrt::text::jinja
