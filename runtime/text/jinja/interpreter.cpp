// Statements and scopes. Expressions are in evaluate.cpp.
#include "runtime/text/jinja/interpreter.h"

#include "runtime/text/jinja/chat_template.h"
#include "runtime/text/jinja/interpreter_guards.h"

namespace llmrt::text::jinja {

Scope::Scope(const FrameInfo &info, std::shared_ptr<Scope> outer)
    : Object(sizeof(Scope) + info.slots.size() * sizeof(Value)), frame(info),
      slots(info.slots.size(), Value::missing()), parent(std::move(outer)) {}

Interpreter::Interpreter(const Tree &tree, Value context, size_t output_limit, std::optional<std::tm> now)
    : tree_(tree), context_(std::move(context)), output_limit_(output_limit), now_(now) {}

Interpreter::~Interpreter() {
  for (auto &scope : captured_scopes_)
    scope->slots.clear();
  for (auto &value : namespaces_)
    value.as<Namespace>().attributes.clear();
}

std::string Interpreter::run() {
  std::string result;
  OutputGuard output(*this, result);
  root_ = enter(tree_.root, nullptr);
  ScopeGuard scope(*this, root_);
  statements(tree_.body);
  return result;
}

std::tm Interpreter::now() const {
  if (now_)
    return *now_;
  std::time_t t = std::time(nullptr);
  std::tm local{};
  localtime_r(&t, &local);
  return local;
}

std::shared_ptr<Scope> Interpreter::enter(const FrameInfo &frame, std::shared_ptr<Scope> outer) {
  auto scope = std::make_shared<Scope>(frame, std::move(outer));
  start_variables(*scope);
  return scope;
}

// Gives the variables of a scope the values they have on entry. Parameters are left to the caller.
void Interpreter::start_variables(Scope &scope) {
  for (size_t i = 0; i < scope.frame.slots.size(); ++i) {
    const auto &slot = scope.frame.slots[i];
    switch (slot.init) {
    case FrameInfo::Init::parameter:
      break;
    case FrameInfo::Init::resolve:
      scope.slots[i] = resolve(slot.name);
      break;
    case FrameInfo::Init::alias: {
      const Scope *outer = scope.parent.get();
      for (int hop = 0; hop < slot.outer.hops; ++hop)
        outer = outer->parent.get();
      scope.slots[i] = outer->slots[static_cast<size_t>(slot.outer.slot)];
      break;
    }
    case FrameInfo::Init::unset:
      scope.slots[i] = Value::missing();
      break;
    }
  }
}

// A name that no scope holds: a variable that the template set at its top level (seen from a block), one of the
// context, or a global function.
Value Interpreter::resolve(const std::string &name) {
  if (root_) {
    int slot = tree_.root.slot_of(name);
    if (slot >= 0 && !root_->slots[static_cast<size_t>(slot)].is_missing())
      return root_->slots[static_cast<size_t>(slot)];
  }
  if (const Value *value = context_.dict().find(std::string_view(name)))
    return *value;
  return find_global(name);
}

void Interpreter::write(const std::string &text) {
  if (out_->size() + text.size() > output_limit_)
    fail("the rendered text is larger than its limit of " + std::to_string(output_limit_) + " bytes");
  charge_bytes(text.size());
  *out_ += text;
}

Interpreter::Flow Interpreter::statements(const std::vector<Node *> &body) {
  for (const Node *node : body)
    if (Flow flow = statement(*node); flow != Flow::next)
      return flow;
  return Flow::next;
}

Interpreter::Flow Interpreter::statement(const Node &node) {
  DepthGuard depth(*this);
  charge(1);
  Budget::current->line = node.line;
  switch (node.kind) {
  case NodeKind::output:
    output(node);
    return Flow::next;
  case NodeKind::for_loop:
    for_loop(node, eval(*node.b), 0);
    return Flow::next;
  case NodeKind::if_block:
    return if_block(node);
  case NodeKind::macro:
    *slot(node.ref) = make_macro(node);
    return Flow::next;
  case NodeKind::call_block:
    call_block(node);
    return Flow::next;
  case NodeKind::filter_block:
    return filter_block(node);
  case NodeKind::with_block:
    return with_block(node);
  case NodeKind::assign: {
    check_namespaces(*node.a);
    assign(*node.a, eval(*node.b), nullptr, nullptr);
    return Flow::next;
  }
  case NodeKind::assign_block:
    return assign_block(node);
  case NodeKind::block:
    named_block(node);
    return Flow::next;
  case NodeKind::scope: {
    ScopeGuard scope(*this, enter(node.frame, scope_));
    return statements(node.body);
  }
  case NodeKind::break_loop:
    return Flow::leave;
  case NodeKind::continue_loop:
    return Flow::again;
  default:
    fail("an expression stands where a statement is expected");
  }
}

void Interpreter::output(const Node &node) {
  for (const Node *child : node.list) {
    if (child->kind == NodeKind::constant && child->value.is_string())
      write(child->value.str());
    else
      write(to_str(eval(*child)));
  }
}

Interpreter::Flow Interpreter::if_block(const Node &node) {
  if (truthy(eval(*node.a)))
    return statements(node.body);
  for (const Node *branch : node.list) {
    Budget::current->line = branch->line;
    if (truthy(eval(*branch->a)))
      return statements(branch->body);
  }
  return statements(node.other);
}

// The items of `iterable` that pass the loop's own filter, tested one by one as the loop asks for them.
Iterator::Next Interpreter::filtered(const Node &node, const Value &iterable) {
  auto scope = enter(node.test_frame, scope_);
  return [this, &node, scope, source = iterate(iterable)](Value &out) {
    for (Value item; source(item);) {
      assign(*node.a, item, &node.test_frame, scope.get());
      ScopeGuard guard(*this, scope);
      if (truthy(eval(*node.c))) {
        out = item;
        return true;
      }
    }
    return false;
  };
}

void Interpreter::for_loop(const Node &node, const Value &iterable, int depth0) {
  Value source = iterable;
  if (node.c)
    source = Value(Kind::iterator, std::make_shared<Iterator>(filtered(node, iterable), nesting_of(iterable)));
  auto loop = std::make_shared<LoopObject>(source);
  loop->depth0 = depth0;
  if (node.flag) {
    loop->recursive_node = &node;
    loop->scope = scope_;
  }
  auto scope = std::make_shared<Scope>(node.frame, scope_);
  int loop_slot = node.uses_loop ? node.frame.slot_of("loop") : -1;
  bool finished_one = false;
  for (Value item; loop->next(item);) {
    charge(1);
    if (loop_slot >= 0)
      scope->slots[static_cast<size_t>(loop_slot)] = Value(Kind::loop, loop);
    assign(*node.a, item, nullptr, scope.get());
    start_variables(*scope);
    ScopeGuard guard(*this, scope);
    Flow flow = statements(node.body);
    if (flow == Flow::leave)
      break;
    finished_one = finished_one || flow == Flow::next;
  }
  // The else branch runs unless some iteration came to its end: `break` and `continue` do not count.
  if (!node.other.empty() && !finished_one) {
    ScopeGuard guard(*this, enter(node.else_frame, scope_));
    statements(node.other);
  }
}

std::string Interpreter::capture(const std::vector<Node *> &body, Flow &flow) {
  std::string text;
  OutputGuard output(*this, text);
  flow = statements(body);
  return text;
}

Interpreter::Flow Interpreter::assign_block(const Node &node) {
  Flow flow;
  Value value;
  {
    ScopeGuard scope(*this, enter(node.frame, scope_));
    value = Value::string(capture(node.body, flow));
    if (flow != Flow::next)
      return flow;
    if (node.b)
      value = eval_filter(*node.b, &value);
  }
  check_namespaces(*node.a);
  assign(*node.a, value, nullptr, nullptr);
  return Flow::next;
}

Interpreter::Flow Interpreter::filter_block(const Node &node) {
  Flow flow;
  Value value;
  {
    ScopeGuard scope(*this, enter(node.frame, scope_));
    value = Value::string(capture(node.body, flow));
    if (flow != Flow::next)
      return flow;
    value = eval_filter(*node.a, &value);
  }
  write(to_str(value));
  return Flow::next;
}

Interpreter::Flow Interpreter::with_block(const Node &node) {
  auto scope = enter(node.frame, scope_);
  for (size_t i = 0; i < node.list.size(); ++i)
    assign(*node.list[i], eval(*node.named[i]), nullptr, scope.get());
  ScopeGuard guard(*this, scope);
  return statements(node.body);
}

void Interpreter::call_block(const Node &node) {
  Value caller = make_macro(node);
  if (!node.a) { // a generation block renders in place
    Arguments none;
    write(to_str(call_macro(caller.as<MacroObject>(), none)));
    return;
  }
  write(to_str(eval_call(*node.a, &caller)));
}

void Interpreter::named_block(const Node &node) {
  ScopeGuard guard(*this, enter(node.frame, nullptr));
  statements(node.body);
}

Value *Interpreter::slot(VariableRef ref) {
  Scope *scope = scope_.get();
  for (int hop = 0; hop < ref.hops; ++hop)
    scope = scope->parent.get();
  return &scope->slots[static_cast<size_t>(ref.slot)];
}

// `set ns.x = ...` works on namespaces only; checked before anything is evaluated.
void Interpreter::check_namespaces(const Node &target) {
  if (target.kind == NodeKind::ns_ref) {
    if (!slot(target.ref)->is(Kind::name_space))
      fail("cannot assign attribute on non-namespace object");
    if (!target.attribute.empty() && target.attribute[0] == '_')
      fail("a namespace cannot hold the underscore-prefixed attribute '" + target.attribute + "'");
  }
  for (const Node *child : target.list)
    check_namespaces(*child);
}

// Into the scope `into`, or the scope that the target names. `by_name`: look slots up in this layout instead.
void Interpreter::assign(const Node &target, const Value &value, const FrameInfo *by_name, Scope *into) {
  switch (target.kind) {
  case NodeKind::name:
    if (into) {
      int index = by_name ? by_name->slot_of(target.text) : target.ref.slot;
      into->slots[static_cast<size_t>(index)] = value;
    } else {
      *slot(target.ref) = value;
    }
    return;
  case NodeKind::ns_ref:
    slot(target.ref)->as<Namespace>().set(target.attribute, value);
    return;
  default:
    break;
  }
  if (!is_iterable(value))
    fail(std::string("cannot unpack non-iterable ") + type_name(value) + " object");
  auto next = iterate(value);
  size_t wanted = target.list.size();
  std::vector<Value> items;
  for (Value item; items.size() <= wanted && next(item);)
    items.push_back(item);
  if (items.size() > wanted)
    fail("too many values to unpack (expected " + std::to_string(wanted) + ")");
  if (items.size() < wanted)
    fail("not enough values to unpack (expected " + std::to_string(wanted) + ", got " + std::to_string(items.size()) +
         ")");
  for (size_t i = 0; i < wanted; ++i)
    assign(*target.list[i], items[i], by_name, into);
}

Value Interpreter::make_namespace(Arguments &arguments) {
  auto object = std::make_shared<Namespace>();
  if (arguments.positional.size() > 1)
    fail("namespace() takes at most one positional argument");
  auto set = [&](const std::string &name, const Value &value) {
    if (!name.empty() && name[0] == '_')
      fail("a namespace cannot hold the underscore-prefixed attribute '" + name + "'");
    object->set(name, value);
  };
  if (!arguments.positional.empty()) {
    const Value &source = arguments.positional[0];
    if (source.is(Kind::dict)) {
      for (const auto &[key, value] : source.dict().items)
        set(require_key(key), value);
    } else {
      for (const auto &entry : to_vector(source)) {
        auto pair = to_vector(entry);
        if (pair.size() != 2)
          fail("namespace() needs pairs of a name and a value");
        set(require_key(pair[0]), pair[1]);
      }
    }
  }
  for (const auto &[key, value] : arguments.named)
    set(key, value);
  Value value(Kind::name_space, object);
  namespaces_.push_back(value);
  return value;
}

} // namespace llmrt::text::jinja
