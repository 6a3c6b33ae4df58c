// A recursive-descent parser for Jinja's statements, over the one for expressions. Depth is bounded in both, so that
// neither the parser nor anything that walks the tree can run out of stack.
#include "runtime/text/jinja/parser.h"

#include "runtime/text/jinja/expression_parser.h"

#include <algorithm>
#include <utility>

namespace llmrt::text::jinja {

namespace {

constexpr int kMaxBlocks = 40; // statements within statements

class StatementParser : public ExpressionParser {
public:
  StatementParser(Tree &tree, std::vector<Token> tokens) : ExpressionParser(tree, std::move(tokens)) {}

  void run() {
    tree_.body = statements({});
    if (!is(TokenKind::end))
      fail_here("unexpected " + describe());
  }

private:
  // --- statements ---
  // Up to one of the `ends`, which becomes the current token (its `{%` consumed).
  std::vector<Node *> statements(Names ends) {
    std::vector<Node *> body;
    Node *output = nullptr;
    auto add_output = [&](Node *node) {
      if (!output) {
        output = make(NodeKind::output, node->line);
        body.push_back(output);
      }
      output->list.push_back(node);
      done(output);
    };
    while (!is(TokenKind::end)) {
      if (is(TokenKind::data)) {
        Node *node = make(NodeKind::constant, current().line);
        node->value = Value::string(current().text);
        advance();
        add_output(node);
      } else if (is(TokenKind::variable_begin)) {
        advance();
        add_output(tuple_or_expression(true, false, {}));
        expect(TokenKind::variable_end, "'}}'");
      } else if (is(TokenKind::block_begin)) {
        advance();
        output = nullptr;
        if (at_any(ends))
          return body;
        body.push_back(statement(ends));
        expect(TokenKind::block_end, "'%}'");
      } else {
        fail_here("unexpected " + describe());
      }
    }
    return body;
  }

  std::vector<Node *> body_until(Names ends) {
    skip_op(":");
    expect(TokenKind::block_end, "'%}'");
    auto body = statements(ends);
    if (is(TokenKind::end)) {
      std::string wanted;
      for (auto end : ends)
        wanted += (wanted.empty() ? "'" : " or '") + std::string(end) + "'";
      fail_here("unexpected end of template, looking for " + wanted);
    }
    return body;
  }

  std::vector<Node *> body_through(std::string_view end) {
    auto body = body_until({end});
    advance();
    return body;
  }

  Node *statement(Names ends) {
    if (!is(TokenKind::name))
      fail_here("tag name expected, got " + describe());
    Depth depth(*this, kMaxBlocks, blocks_, "blocks");
    const std::string tag = current().text;
    int line = current().line;
    advance();
    if (tag == "for")
      return for_loop(line);
    if (tag == "if")
      return if_block(line);
    if (tag == "set")
      return set(line);
    if (tag == "macro")
      return macro(line);
    if (tag == "call")
      return call_block(line);
    if (tag == "filter")
      return filter_block(line);
    if (tag == "with")
      return with_block(line);
    if (tag == "print")
      return print(line);
    if (tag == "block")
      return named_block(line);
    if (tag == "generation")
      return generation(line);
    if (tag == "autoescape")
      return autoescape(line);
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0)
        fail_at("'" + tag + "' outside of a loop", line);
      return make(tag == "break" ? NodeKind::break_loop : NodeKind::continue_loop, line);
    }
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends")
      fail_at("'" + tag + "' needs other template files, which a chat template cannot have", line);
    std::string message = "unknown tag '" + tag + "'";
    if (ends.size())
      message += " where '" + std::string(*ends.begin()) + "' may come";
    fail_at(message, line);
  }

  // Macro bodies are functions of their own: a loop around them cannot be left from inside.
  struct OutsideLoops {
    explicit OutsideLoops(StatementParser &p) : parser(p), saved(p.loops_) { p.loops_ = 0; }
    ~OutsideLoops() { parser.loops_ = saved; }
    StatementParser &parser;
    int saved;
  };

  Node *for_loop(int line) {
    Node *node = make(NodeKind::for_loop, line);
    node->a = assignment_target({"in"}, false);
    if (!skip_name("in"))
      fail_here("expected 'in', got " + describe());
    node->b = tuple_or_expression(false, false, {"recursive"});
    if (skip_name("if"))
      node->c = expression();
    node->flag = skip_name("recursive");
    int outer_loops = loops_;
    loops_ = node->flag ? 1 : loops_ + 1;
    node->body = body_until({"endfor", "else"});
    loops_ = node->flag ? 0 : outer_loops;
    if (is_name("else")) {
      advance();
      node->other = body_until({"endfor"});
    }
    loops_ = outer_loops;
    advance();
    return done(node);
  }

  Node *if_block(int line) {
    Node *node = make(NodeKind::if_block, line);
    node->a = tuple_or_expression(false, false, {});
    node->body = body_until({"elif", "else", "endif"});
    while (is_name("elif")) {
      Node *branch = make(NodeKind::if_block, current().line);
      advance();
      branch->a = tuple_or_expression(false, false, {});
      branch->body = body_until({"elif", "else", "endif"});
      node->list.push_back(done(branch));
    }
    if (is_name("else")) {
      advance();
      node->other = body_until({"endif"});
    }
    advance();
    return done(node);
  }

  Node *set(int line) {
    Node *target = assignment_target({}, true);
    if (skip_op("=")) {
      Node *node = make(NodeKind::assign, line);
      node->a = target;
      node->b = tuple_or_expression(true, false, {});
      return done(node);
    }
    Node *node = make(NodeKind::assign_block, line);
    node->a = target;
    node->b = filters(nullptr);
    node->body = body_through("endset");
    return done(node);
  }

  void signature(Node *node) {
    expect_op("(");
    while (!is_op(")")) {
      if (!node->parameters.empty())
        expect_op(",");
      int line = current().line;
      Node *parameter = make(NodeKind::name, line);
      parameter->text = expect_name();
      parameter->access = Access::param;
      check_assignable(parameter);
      for (const Node *other : node->parameters)
        if (other->text == parameter->text)
          fail_at("duplicate argument '" + other->text + "'", line);
      if (skip_op("="))
        node->defaults.push_back(expression());
      else if (!node->defaults.empty())
        fail_here("non-default argument follows default argument");
      node->parameters.push_back(parameter);
    }
    expect_op(")");
  }

  Node *macro(int line) {
    Node *node = make(NodeKind::macro, line);
    node->text = expect_name();
    signature(node);
    OutsideLoops outside(*this);
    node->body = body_through("endmacro");
    return done(node);
  }

  Node *call_block(int line) {
    Node *node = make(NodeKind::call_block, line);
    if (is_op("("))
      signature(node);
    node->a = expression();
    if (node->a->kind != NodeKind::call)
      fail_at("expected a call after 'call'", line);
    OutsideLoops outside(*this);
    node->body = body_through("endcall");
    return done(node);
  }

  Node *generation(int line) {
    Node *node = make(NodeKind::call_block, line);
    OutsideLoops outside(*this);
    node->body = body_through("endgeneration");
    return done(node);
  }

  Node *filter_block(int line) {
    Node *node = make(NodeKind::filter_block, line);
    node->a = filters(filter_call(nullptr));
    node->body = body_through("endfilter");
    return done(node);
  }

  Node *with_block(int line) {
    Node *node = make(NodeKind::with_block, line);
    while (!is(TokenKind::block_end)) {
      if (!node->list.empty())
        expect_op(",");
      Node *target = assignment_target({}, false);
      set_access(target, Access::param);
      node->list.push_back(target);
      expect_op("=");
      node->named.push_back(expression());
    }
    node->body = body_through("endwith");
    return done(node);
  }

  Node *print(int line) {
    Node *node = make(NodeKind::output, line);
    while (!is(TokenKind::block_end)) {
      if (!node->list.empty())
        expect_op(",");
      node->list.push_back(expression());
    }
    return done(node);
  }

  Node *named_block(int line) {
    Node *node = make(NodeKind::block, line);
    node->text = expect_name();
    skip_name("scoped");
    skip_name("required");
    if (std::find(block_names_.begin(), block_names_.end(), node->text) != block_names_.end())
      fail_at("block '" + node->text + "' defined twice", line);
    block_names_.push_back(node->text);
    OutsideLoops outside(*this);
    node->body = body_through("endblock");
    skip_name(node->text);
    return done(node);
  }

  Node *autoescape(int line) {
    Node *node = make(NodeKind::scope, line);
    Node *mode = expression();
    if (mode->kind != NodeKind::constant || truthy(mode->value))
      fail_at("autoescape can only be switched off in a chat template", line);
    node->body = body_through("endautoescape");
    return done(node);
  }

  // --- assignment targets ---
  void check_assignable(const Node *node) {
    if (node->kind == NodeKind::tuple) {
      for (const Node *child : node->list)
        check_assignable(child);
      return;
    }
    static constexpr std::string_view kReserved[] = {"true", "false", "none", "True", "False", "None"};
    if (node->kind != NodeKind::ns_ref &&
        (node->kind != NodeKind::name ||
         std::find(std::begin(kReserved), std::end(kReserved), node->text) != std::end(kReserved)))
      fail_at("can't assign to this expression", node->line);
  }

  void set_access(Node *node, Access access) {
    if (node->kind == NodeKind::name)
      node->access = access;
    for (Node *child : node->list)
      set_access(child, access);
  }

  Node *assignment_target(Names ends, bool with_namespace) {
    Node *target = tuple(ends, false, [&] { return primary(with_namespace); });
    check_assignable(target);
    set_access(target, Access::store);
    return target;
  }

  int blocks_ = 0, loops_ = 0;
  std::vector<std::string> block_names_;
};

} // namespace

void parse(const std::string &source, Tree &tree) {
  StatementParser(tree, tokenize(source)).run();
  resolve_variables(tree);
}

} // namespace llmrt::text::jinja
