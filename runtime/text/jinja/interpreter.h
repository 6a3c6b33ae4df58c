// Executes a template's tree against a context. One Interpreter serves one rendering and is not shared.
#pragma once

#include "runtime/text/jinja/ast.h"

#include <ctime>
#include <optional>
#include <string>

namespace llmrt::text::jinja {

/// The variables of one entered scope.
struct Scope final : Object {
  Scope(const FrameInfo &frame, std::shared_ptr<Scope> outer);
  const FrameInfo &frame;
  std::vector<Value> slots;
  std::shared_ptr<Scope> parent;
};

class Interpreter {
public:
  /// `context`: a dict of the variables. `now` replaces the local time if set.
  Interpreter(const Tree &tree, Value context, size_t output_limit, std::optional<std::tm> now);
  ~Interpreter();
  Interpreter(const Interpreter &) = delete;
  Interpreter &operator=(const Interpreter &) = delete;

  std::string run();

  // For filters, methods and global functions:
  Value call(const Value &callee, Arguments &arguments);
  Value attribute(const Value &object, const std::string &name);             ///< object.name
  Value item(const Value &object, const Value &key);                         ///< object[key]
  Value filter(const std::string &name, const Value &input, Arguments &arguments);
  bool test(const std::string &name, const Value &input, Arguments &arguments);
  Value make_namespace(Arguments &arguments);
  std::tm now() const;

private:
  enum class Flow { next, leave, again };
  class ScopeGuard;
  class OutputGuard;
  class DepthGuard;

  Flow statements(const std::vector<Node *> &body);
  Flow statement(const Node &node);
  void output(const Node &node);
  Flow if_block(const Node &node);
  void for_loop(const Node &node, const Value &iterable, int depth0);
  Iterator::Next filtered(const Node &node, const Value &iterable);
  Flow assign_block(const Node &node);
  Flow filter_block(const Node &node);
  Flow with_block(const Node &node);
  void call_block(const Node &node);
  void named_block(const Node &node);
  std::shared_ptr<Scope> enter(const FrameInfo &frame, std::shared_ptr<Scope> outer);
  void start_variables(Scope &scope);
  void write(const std::string &text);
  std::string capture(const std::vector<Node *> &body, Flow &flow);

  void assign(const Node &target, const Value &value, const FrameInfo *by_name, Scope *into);
  void check_namespaces(const Node &target);
  Value resolve(const std::string &name);
  Value *slot(VariableRef ref);

  Value eval(const Node &node);
  Value eval_name(const Node &node);
  Value eval_sequence(const Node &node);
  Value eval_dict(const Node &node);
  Value eval_concat(const Node &node);
  Value eval_compare(const Node &node);
  Value eval_slice(const Node &node);
  Value eval_filter(const Node &node, const Value *input);
  Value eval_test(const Node &node);
  Value eval_call(const Node &node, const Value *caller);
  void eval_arguments(const Node &node, Arguments &arguments);
  Value call_macro(const MacroObject &macro, Arguments &arguments);
  Value make_macro(const Node &node);

  const Tree &tree_;
  Value context_;
  size_t output_limit_;
  std::optional<std::tm> now_;
  std::string *out_ = nullptr;
  std::shared_ptr<Scope> scope_;
  std::shared_ptr<Scope> root_;
  int depth_ = 0;
  int macro_depth_ = 0;
  // What can hold references in a circle; emptied at the end.
  std::vector<std::shared_ptr<Scope>> captured_scopes_;
  std::vector<Value> namespaces_;
};

/// The functions every template can call: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
/// Missing if there is none of that name.
Value find_global(const std::string &name);

} // namespace llmrt::text::jinja
