// Variable resolution. Each scope first collects the names that it reads and assigns in its own statements (not in
// the scopes inside of it), which decides where every name lives; then its statements are walked again to give each
// name its slot and to open the inner scopes.
#include "runtime/text/jinja/chat_template.h"
#include "runtime/text/jinja/parser.h"

#include <algorithm>
#include <map>
#include <set>

namespace llmrt::text::jinja {

int FrameInfo::slot_of(const std::string &name) const {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].name == name)
      return static_cast<int>(i);
  return -1;
}

namespace {

using Init = FrameInfo::Init;

// The names of one scope, while it is analysed.
struct Symbols {
  Symbols *parent = nullptr;
  std::map<std::string, Init> refs; // names that live in this scope, and how they start
  std::set<std::string> stores;

  bool known(const std::string &name) const { return refs.count(name) || (parent && parent->known(name)); }

  void store(const std::string &name) {
    stores.insert(name);
    if (!refs.count(name))
      refs[name] = parent && parent->known(name) ? Init::alias : Init::unset;
  }
  void declare_parameter(const std::string &name) {
    stores.insert(name);
    refs[name] = Init::parameter;
  }
  void load(const std::string &name) {
    if (!known(name))
      refs[name] = Init::resolve;
  }

  // After an `if`: a name that only some branches assign keeps its outer value on the other paths.
  void merge(const std::vector<Symbols> &branches) {
    std::set<std::string> assigned;
    for (const auto &branch : branches)
      assigned.insert(branch.stores.begin(), branch.stores.end());
    for (const auto &name : stores)
      assigned.erase(name);
    for (const auto &branch : branches) {
      for (const auto &[name, init] : branch.refs)
        refs[name] = init;
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const auto &name : assigned)
      refs[name] = parent && parent->known(name) ? Init::alias : Init::resolve;
  }
};

template <typename Visit> void for_each_child(Node *node, Visit visit) {
  for (Node *child : {node->a, node->b, node->c})
    if (child)
      visit(child);
  for (auto *children : {&node->list, &node->named, &node->parameters, &node->defaults, &node->body, &node->other})
    for (Node *child : *children)
      visit(child);
}

// Whether `name` is read in `nodes` before anything there assigns it.
bool reads_undeclared(const std::vector<Node *> &nodes, const std::string &name) {
  bool read = false, assigned = false;
  auto visit = [&](auto &self, Node *node) -> void {
    if (read || assigned || node->kind == NodeKind::block)
      return;
    if (node->kind == NodeKind::name && node->text == name) {
      (node->access == Access::load ? read : assigned) = true;
      return;
    }
    for_each_child(node, [&](Node *child) { self(self, child); });
  };
  for (Node *node : nodes)
    visit(visit, node);
  return read;
}

bool assigns(Node *node, const std::string &name) {
  if (node->kind == NodeKind::name && node->access == Access::store && node->text == name)
    return true;
  bool found = false;
  for_each_child(node, [&](Node *child) { found = found || assigns(child, name); });
  return found;
}

bool has_block(Node *node) {
  if (node->kind == NodeKind::block)
    return true;
  bool found = false;
  for_each_child(node, [&](Node *child) { found = found || has_block(child); });
  return found;
}

// First walk: what a statement or expression does to the names of the scope that it stands in.
class Collector {
public:
  explicit Collector(Symbols &symbols) : symbols_(&symbols) {}

  void visit(Node *node) {
    switch (node->kind) {
    case NodeKind::name:
      if (node->access == Access::param)
        symbols_->declare_parameter(node->text);
      else if (node->access == Access::store)
        symbols_->store(node->text);
      else
        symbols_->load(node->text);
      return;
    case NodeKind::ns_ref:
      symbols_->load(node->text);
      return;
    case NodeKind::if_block:
      visit(node->a);
      branches(node);
      return;
    case NodeKind::macro:
      symbols_->store(node->text);
      return;
    case NodeKind::assign:
      visit(node->b);
      visit(node->a);
      return;
    case NodeKind::for_loop:
      visit(node->b);
      return;
    case NodeKind::call_block:
    case NodeKind::filter_block:
    case NodeKind::assign_block:
      if (node->a)
        visit(node->a);
      return;
    case NodeKind::with_block:
      all(node->named);
      return;
    case NodeKind::scope:
    case NodeKind::block:
      return;
    default:
      for_each_child(node, [this](Node *child) { visit(child); });
    }
  }

  void all(const std::vector<Node *> &nodes) {
    for (Node *node : nodes)
      visit(node);
  }

  void parameters(Node *target) { // a loop's target
    if (target->kind == NodeKind::name)
      symbols_->declare_parameter(target->text);
    for (Node *child : target->list)
      parameters(child);
  }

private:
  void branches(Node *node) {
    Symbols *outer = symbols_;
    std::vector<Symbols> copies;
    for (const auto *part : {&node->body, &node->list, &node->other}) {
      Symbols copy = *outer;
      symbols_ = &copy;
      all(*part);
      copies.push_back(std::move(copy));
    }
    symbols_ = outer;
    outer->merge(copies);
  }

  Symbols *symbols_;
};

// Second walk: gives names their slots.
class Resolver {
public:
  explicit Resolver(Tree &tree) : tree_(tree) {}

  void run() {
    Symbols symbols;
    Collector(symbols).all(tree_.body);
    open(symbols, tree_.root);
    all(tree_.body);
  }

private:
  struct Level {
    Symbols *symbols;
    FrameInfo *frame;
  };

  // Lays out the slots of a scope whose names are known. Aliases are seen from the scope outside.
  void open(Symbols &symbols, FrameInfo &frame) {
    frame.slots.clear();
    for (const auto &[name, init] : symbols.refs) {
      VariableRef outer;
      if (init == Init::alias)
        outer = find(name, 0);
      frame.slots.push_back({name, init, outer});
    }
    levels_.push_back({&symbols, &frame});
  }

  // From `skip` scopes outside of the innermost one.
  VariableRef find(const std::string &name, int skip) const {
    int hops = 0;
    for (size_t i = levels_.size() - static_cast<size_t>(skip); i-- > 0; ++hops) {
      if (levels_[i].symbols->refs.count(name))
        return {hops, levels_[i].frame->slot_of(name)};
    }
    return {};
  }

  Symbols inner() const {
    Symbols symbols;
    symbols.parent = levels_.empty() ? nullptr : levels_.back().symbols;
    return symbols;
  }

  // Runs `walk` inside of a scope.
  template <typename Walk> void within(Symbols &symbols, FrameInfo &frame, Walk walk) {
    bool soft = soft_;
    soft_ = false;
    open(symbols, frame);
    walk();
    levels_.pop_back();
    soft_ = soft;
  }

  void all(const std::vector<Node *> &nodes) {
    for (Node *node : nodes)
      visit(node);
  }

  void set_ref(Node *node) {
    node->ref = find(node->text, 0);
    if (node->ref.hops < 0)
      throw TemplateError("the name '" + node->text + "' cannot be resolved here", node->line);
  }

  void visit(Node *node) {
    switch (node->kind) {
    case NodeKind::name:
    case NodeKind::ns_ref:
      set_ref(node);
      return;
    case NodeKind::filter:
    case NodeKind::test:
      // Inside of an `if` an unknown one is an error only when it is reached.
      if (!node->flag && !soft_)
        throw TemplateError(
            std::string("No ") + (node->kind == NodeKind::filter ? "filter" : "test") + " named '" + node->text + "'",
            node->line);
      for_each_child(node, [this](Node *child) { visit(child); });
      return;
    case NodeKind::if_block:
      softly([&] { for_each_child(node, [this](Node *child) { visit(child); }); });
      return;
    case NodeKind::conditional:
      softly([&] { for_each_child(node, [this](Node *child) { visit(child); }); });
      return;
    case NodeKind::for_loop:
      for_loop(node);
      return;
    case NodeKind::macro:
      node->ref = find(node->text, 0);
      macro_body(node);
      return;
    case NodeKind::call_block:
      if (node->a)
        visit(node->a);
      macro_body(node);
      return;
    case NodeKind::filter_block: {
      Symbols symbols = inner();
      Collector collector(symbols);
      collector.all(node->body);
      collector.visit(node->a);
      within(symbols, node->frame, [&] {
        all(node->body);
        visit(node->a);
      });
      return;
    }
    case NodeKind::assign_block: {
      visit(node->a);
      Symbols symbols = inner();
      Collector collector(symbols);
      collector.all(node->body);
      if (node->b)
        collector.visit(node->b);
      within(symbols, node->frame, [&] {
        all(node->body);
        if (node->b)
          visit(node->b);
      });
      return;
    }
    case NodeKind::with_block: {
      all(node->named);
      Symbols symbols = inner();
      Collector collector(symbols);
      collector.all(node->list);
      collector.all(node->body);
      within(symbols, node->frame, [&] {
        all(node->list);
        all(node->body);
      });
      return;
    }
    case NodeKind::scope: {
      Symbols symbols = inner();
      Collector(symbols).all(node->body);
      within(symbols, node->frame, [&] { all(node->body); });
      return;
    }
    case NodeKind::block: {
      // Blocks see only the variables of the context.
      auto levels = std::move(levels_);
      levels_.clear();
      Symbols symbols;
      Collector(symbols).all(node->body);
      within(symbols, node->frame, [&] { all(node->body); });
      levels_ = std::move(levels);
      return;
    }
    default:
      for_each_child(node, [this](Node *child) { visit(child); });
    }
  }

  template <typename Walk> void softly(Walk walk) {
    bool soft = soft_;
    soft_ = true;
    walk();
    soft_ = soft;
  }

  void for_loop(Node *node) {
    visit(node->b);
    if (assigns(node, "loop"))
      throw TemplateError("can't assign to the special variable 'loop' in a for loop", node->line);
    bool blocks = std::any_of(node->body.begin(), node->body.end(), has_block);
    node->uses_loop = node->flag || blocks || reads_undeclared(node->body, "loop");
    if (node->c) {
      Symbols symbols = inner();
      Collector collector(symbols);
      collector.parameters(node->a);
      collector.visit(node->c);
      // The target is assigned in the loop's own scope for the body; the filter has its own copy of it.
      within(symbols, node->test_frame, [&] { visit(node->c); });
    }
    Symbols symbols = inner();
    if (node->uses_loop)
      symbols.declare_parameter("loop");
    Collector collector(symbols);
    collector.parameters(node->a);
    collector.all(node->body);
    within(symbols, node->frame, [&] {
      visit(node->a);
      all(node->body);
    });
    if (!node->other.empty()) {
      Symbols else_symbols = inner();
      Collector(else_symbols).all(node->other);
      within(else_symbols, node->else_frame, [&] { all(node->other); });
    }
  }

  void macro_body(Node *node) {
    Symbols symbols = inner();
    Collector collector(symbols);
    collector.all(node->parameters);
    collector.all(node->defaults);
    collector.all(node->body);
    auto has_parameter = [&](const char *name) {
      return std::any_of(node->parameters.begin(), node->parameters.end(),
                         [&](const Node *parameter) { return parameter->text == name; });
    };
    node->uses_caller = reads_undeclared(node->body, "caller");
    node->uses_kwargs = reads_undeclared(node->body, "kwargs") && !has_parameter("kwargs");
    node->uses_varargs = reads_undeclared(node->body, "varargs") && !has_parameter("varargs");
    if (node->uses_caller && has_parameter("caller")) {
      size_t first_default = node->parameters.size() - node->defaults.size();
      for (size_t i = 0; i < first_default; ++i)
        if (node->parameters[i]->text == "caller")
          throw TemplateError("the special argument 'caller' must be omitted or be given a default", node->line);
    } else if (node->uses_caller) {
      symbols.declare_parameter("caller");
    }
    if (node->uses_kwargs)
      symbols.declare_parameter("kwargs");
    if (node->uses_varargs)
      symbols.declare_parameter("varargs");
    within(symbols, node->frame, [&] {
      all(node->parameters);
      all(node->defaults);
      all(node->body);
    });
  }

  Tree &tree_;
  std::vector<Level> levels_;
  bool soft_ = false;
};

} // namespace

void resolve_variables(Tree &tree) { Resolver(tree).run(); }

} // namespace llmrt::text::jinja
