// A recursive-descent parser for Jinja's grammar (statements here, expressions in the second half). Depth is bounded,
// so that neither the parser nor anything that walks the tree can run out of stack.
#include "runtime/text/jinja/parser.h"

#include "runtime/text/jinja/chat_template.h"
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/lexer.h"

#include <algorithm>
#include <initializer_list>

namespace llmrt::text::jinja {

namespace {

constexpr int kMaxDepth = 150;  // open brackets, prefixes and blocks
constexpr int kMaxHeight = 400; // of the tree, e.g. links in a chain of +
constexpr int kMaxBlocks = 40;  // statements within statements

class Parser {
public:
  Parser(Tree &tree, std::vector<Token> tokens) : tree_(tree), tokens_(std::move(tokens)) {}

  void run() {
    tree_.body = statements({});
    if (!is(TokenKind::end))
      fail_here("unexpected " + describe());
  }

private:
  // --- tokens ---
  const Token &current() const { return tokens_[at_]; }
  const Token &ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_op(std::string_view op) const { return is(TokenKind::op) && current().text == op; }
  bool is_name(std::string_view name) const { return is(TokenKind::name) && current().text == name; }
  void advance() {
    if (at_ + 1 < tokens_.size())
      ++at_;
  }
  bool skip_op(std::string_view op) {
    if (!is_op(op))
      return false;
    advance();
    return true;
  }
  bool skip_name(std::string_view name) {
    if (!is_name(name))
      return false;
    advance();
    return true;
  }

  [[noreturn]] void fail_at(const std::string &message, int line) const { throw TemplateError(message, line); }
  [[noreturn]] void fail_here(const std::string &message) const { fail_at(message, current().line); }

  std::string describe() const {
    switch (current().kind) {
    case TokenKind::data:
      return "template text";
    case TokenKind::block_begin:
      return "'{%'";
    case TokenKind::block_end:
      return "'%}'";
    case TokenKind::variable_begin:
      return "'{{'";
    case TokenKind::variable_end:
      return "'}}'";
    case TokenKind::string:
      return "a string";
    case TokenKind::integer:
    case TokenKind::floating:
      return "a number";
    case TokenKind::end:
      return "end of template";
    default:
      return "'" + current().text + "'";
    }
  }

  void expect_op(std::string_view op) {
    if (!skip_op(op))
      fail_here("expected '" + std::string(op) + "', got " + describe());
  }
  void expect(TokenKind kind, const char *what) {
    if (!is(kind))
      fail_here(std::string("expected ") + what + ", got " + describe());
    advance();
  }
  std::string expect_name() {
    if (!is(TokenKind::name))
      fail_here("expected a name, got " + describe());
    std::string name = current().text;
    advance();
    return name;
  }

  // --- nodes ---
  Node *make(NodeKind kind, int line) {
    tree_.nodes.emplace_back();
    Node &node = tree_.nodes.back();
    node.kind = kind;
    node.line = line;
    return &node;
  }

  // To be called once a node's children are set.
  Node *done(Node *node) {
    int tallest = 0;
    auto visit = [&](const Node *child) {
      if (child)
        tallest = std::max(tallest, child->height);
    };
    visit(node->a);
    visit(node->b);
    visit(node->c);
    for (const auto *children :
         {&node->list, &node->named, &node->parameters, &node->defaults, &node->body, &node->other})
      for (const Node *child : *children)
        visit(child);
    node->height = tallest + 1;
    if (node->height > kMaxHeight)
      fail_at("an expression is nested deeper than " + std::to_string(kMaxHeight) + " levels", node->line);
    return node;
  }

  struct Depth {
    Depth(Parser &p, int limit, int &counter, const char *what) : counter(counter) {
      if (++counter > limit) {
        --counter;
        p.fail_here(std::string(what) + " are nested deeper than " + std::to_string(limit) + " levels");
      }
    }
    ~Depth() { --counter; }
    int &counter;
  };

  // --- statements ---
  using Names = std::initializer_list<std::string_view>;

  bool at_any(Names names) const {
    return is(TokenKind::name) && std::find(names.begin(), names.end(), current().text) != names.end();
  }

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
    explicit OutsideLoops(Parser &p) : parser(p), saved(p.loops_) { p.loops_ = 0; }
    ~OutsideLoops() { parser.loops_ = saved; }
    Parser &parser;
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

  // --- expressions ---
  bool at_tuple_end(Names ends) const {
    return is(TokenKind::variable_end) || is(TokenKind::block_end) || is_op(")") || at_any(ends);
  }

  template <typename ParseItem> Node *tuple(Names ends, bool parenthesized, ParseItem parse_item) {
    int line = current().line;
    std::vector<Node *> items;
    bool is_tuple = false;
    while (true) {
      if (!items.empty())
        expect_op(",");
      if (at_tuple_end(ends))
        break;
      items.push_back(parse_item());
      if (!is_op(","))
        break;
      is_tuple = true;
    }
    if (!is_tuple) {
      if (!items.empty())
        return items.front();
      if (!parenthesized)
        fail_here("expected an expression, got " + describe());
    }
    Node *node = make(NodeKind::tuple, line);
    node->list = std::move(items);
    return done(node);
  }

  Node *tuple_or_expression(bool with_conditional, bool parenthesized, Names ends) {
    return tuple(ends, parenthesized, [&] { return with_conditional ? expression() : or_expression(); });
  }

  Node *expression() {
    Depth depth(*this, kMaxDepth, depth_, "expressions");
    int line = current().line;
    Node *result = or_expression();
    while (skip_name("if")) {
      Node *node = make(NodeKind::conditional, line);
      node->b = result;
      node->a = or_expression();
      if (skip_name("else"))
        node->c = expression();
      result = done(node);
      line = current().line;
    }
    return result;
  }

  Node *pair(NodeKind kind, Node *left, Node *right, int line, const std::string &op = {}) {
    Node *node = make(kind, line);
    node->a = left;
    node->b = right;
    node->text = op;
    return done(node);
  }

  Node *or_expression() {
    Depth depth(*this, 2 * kMaxDepth, inner_depth_, "expressions");
    int line = current().line;
    Node *left = and_expression();
    while (skip_name("or")) {
      left = pair(NodeKind::logical_or, left, and_expression(), line);
      line = current().line;
    }
    return left;
  }

  Node *and_expression() {
    int line = current().line;
    Node *left = not_expression();
    while (skip_name("and")) {
      left = pair(NodeKind::logical_and, left, not_expression(), line);
      line = current().line;
    }
    return left;
  }

  Node *not_expression() {
    if (!is_name("not"))
      return compare();
    Depth depth(*this, kMaxDepth, depth_, "expressions");
    Node *node = make(NodeKind::logical_not, current().line);
    advance();
    node->a = not_expression();
    return done(node);
  }

  Node *compare() {
    int line = current().line;
    Node *first = sum();
    Node *node = nullptr;
    while (true) {
      std::string op;
      if (is(TokenKind::op)) {
        static constexpr std::string_view kOps[] = {"==", "!=", "<", "<=", ">", ">="};
        if (std::find(std::begin(kOps), std::end(kOps), current().text) == std::end(kOps))
          break;
        op = current().text;
        advance();
      } else if (skip_name("in")) {
        op = "in";
      } else if (is_name("not") && ahead().kind == TokenKind::name && ahead().text == "in") {
        advance();
        advance();
        op = "not in";
      } else {
        break;
      }
      if (!node) {
        node = make(NodeKind::compare, line);
        node->a = first;
      }
      node->ops.push_back(op);
      node->list.push_back(sum());
    }
    return node ? done(node) : first;
  }

  Node *sum() {
    int line = current().line;
    Node *left = concat();
    while (is_op("+") || is_op("-")) {
      std::string op = current().text;
      advance();
      left = pair(NodeKind::binary, left, concat(), line, op);
      line = current().line;
    }
    return left;
  }

  Node *concat() {
    int line = current().line;
    Node *first = product();
    if (!is_op("~"))
      return first;
    Node *node = make(NodeKind::concat, line);
    node->list.push_back(first);
    while (skip_op("~"))
      node->list.push_back(product());
    return done(node);
  }

  Node *product() {
    int line = current().line;
    Node *left = power();
    while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
      std::string op = current().text;
      advance();
      left = pair(NodeKind::binary, left, power(), line, op);
      line = current().line;
    }
    return left;
  }

  Node *power() {
    int line = current().line;
    Node *left = unary(true);
    while (skip_op("**")) {
      left = pair(NodeKind::binary, left, unary(true), line, "**");
      line = current().line;
    }
    return left;
  }

  Node *unary(bool with_filters) {
    Depth depth(*this, kMaxDepth, depth_, "expressions");
    int line = current().line;
    Node *node;
    if (is_op("-") || is_op("+")) {
      node = make(is_op("-") ? NodeKind::negative : NodeKind::positive, line);
      advance();
      node->a = unary(false);
      done(node);
    } else {
      node = primary(false);
    }
    node = postfix(node);
    return with_filters ? filters_and_tests(node) : node;
  }

  Node *constant(Value value, int line) {
    Node *node = make(NodeKind::constant, line);
    node->value = std::move(value);
    return node;
  }

  Node *primary(bool with_namespace) {
    const Token token = current();
    switch (token.kind) {
    case TokenKind::name:
      advance();
      if (token.text == "true" || token.text == "True")
        return constant(Value::boolean(true), token.line);
      if (token.text == "false" || token.text == "False")
        return constant(Value::boolean(false), token.line);
      if (token.text == "none" || token.text == "None")
        return constant(Value(), token.line);
      if (with_namespace && skip_op(".")) {
        Node *node = make(NodeKind::ns_ref, token.line);
        node->text = token.text;
        node->attribute = expect_name();
        return node;
      } else {
        Node *node = make(NodeKind::name, token.line);
        node->text = token.text;
        return node;
      }
    case TokenKind::string: {
      std::string text;
      for (; is(TokenKind::string); advance())
        text += current().text;
      return constant(Value::string(std::move(text)), token.line);
    }
    case TokenKind::integer:
      advance();
      return constant(Value::integer(token.integer), token.line);
    case TokenKind::floating:
      advance();
      return constant(Value::floating(token.floating), token.line);
    case TokenKind::op:
      if (token.text == "(") {
        Depth depth(*this, kMaxDepth, depth_, "expressions");
        advance();
        Node *node = tuple_or_expression(true, true, {});
        expect_op(")");
        return node;
      }
      if (token.text == "[")
        return list_display();
      if (token.text == "{")
        return dict_display();
      [[fallthrough]];
    default:
      fail_here("unexpected " + describe());
    }
  }

  Node *list_display() {
    Node *node = make(NodeKind::list, current().line);
    advance();
    while (!is_op("]")) {
      if (!node->list.empty())
        expect_op(",");
      if (is_op("]"))
        break;
      node->list.push_back(expression());
    }
    expect_op("]");
    return done(node);
  }

  Node *dict_display() {
    Node *node = make(NodeKind::dict, current().line);
    advance();
    while (!is_op("}")) {
      if (!node->list.empty())
        expect_op(",");
      if (is_op("}"))
        break;
      node->list.push_back(expression());
      expect_op(":");
      node->list.push_back(expression());
    }
    expect_op("}");
    return done(node);
  }

  Node *postfix(Node *node) {
    while (true) {
      if (is_op(".") || is_op("["))
        node = subscript(node);
      else if (is_op("("))
        node = call(node);
      else
        return node;
    }
  }

  Node *filters_and_tests(Node *node) {
    while (true) {
      if (is_op("|"))
        node = filters(node);
      else if (is_name("is"))
        node = test(node);
      else if (is_op("("))
        node = call(node);
      else
        return node;
    }
  }

  Node *subscript(Node *object) {
    int line = current().line;
    if (skip_op(".")) {
      if (is(TokenKind::name)) {
        Node *node = make(NodeKind::attribute, line);
        node->a = object;
        node->text = expect_name();
        return done(node);
      }
      if (!is(TokenKind::integer))
        fail_here("expected name or number, got " + describe());
      Node *node = make(NodeKind::item, line);
      node->a = object;
      node->b = constant(Value::integer(current().integer), line);
      advance();
      return done(node);
    }
    advance(); // [
    std::vector<Node *> parts;
    while (!is_op("]")) {
      if (!parts.empty())
        expect_op(",");
      parts.push_back(subscript_part());
    }
    expect_op("]");
    Node *node = make(NodeKind::item, line);
    node->a = object;
    if (parts.size() == 1) {
      node->b = parts.front();
    } else {
      for (const Node *part : parts)
        if (part->kind == NodeKind::slice)
          fail_at("a slice cannot be one of several subscripts", line);
      node->b = make(NodeKind::tuple, line);
      node->b->list = std::move(parts);
      done(node->b);
    }
    return done(node);
  }

  Node *subscript_part() {
    int line = current().line;
    Node *first = nullptr;
    if (!is_op(":")) {
      first = expression();
      if (!is_op(":"))
        return first;
    }
    advance();
    Node *node = make(NodeKind::slice, line);
    node->a = first;
    auto absent = [&] { return is_op("]") || is_op(","); };
    if (!is_op(":") && !absent())
      node->b = expression();
    if (skip_op(":") && !absent())
      node->c = expression();
    return done(node);
  }

  void arguments(Node *node) {
    int line = current().line;
    auto ensure = [&](bool ok) {
      if (!ok)
        fail_at("invalid syntax for function call expression", line);
    };
    expect_op("(");
    bool first = true;
    while (!is_op(")")) {
      if (!first) {
        expect_op(",");
        if (is_op(")"))
          break;
      }
      first = false;
      if (skip_op("*")) {
        ensure(!node->b && !node->c);
        node->b = expression();
      } else if (skip_op("**")) {
        ensure(!node->c);
        node->c = expression();
      } else if (is(TokenKind::name) && ahead().kind == TokenKind::op && ahead().text == "=") {
        ensure(!node->c);
        Node *keyword = make(NodeKind::keyword, current().line);
        keyword->text = expect_name();
        advance();
        keyword->a = expression();
        for (const Node *other : node->named)
          if (other->text == keyword->text)
            fail_at("keyword argument repeated: " + keyword->text, line);
        node->named.push_back(done(keyword));
      } else {
        ensure(!node->b && !node->c && node->named.empty());
        node->list.push_back(expression());
      }
    }
    expect_op(")");
  }

  Node *call(Node *callee) {
    Node *node = make(NodeKind::call, current().line);
    node->a = callee;
    arguments(node);
    return done(node);
  }

  std::string dotted_name() {
    std::string name = expect_name();
    while (skip_op("."))
      name += "." + expect_name();
    return name;
  }

  Node *filter_call(Node *input) {
    Node *node = make(NodeKind::filter, current().line);
    node->a = input;
    node->text = dotted_name();
    if (is_op("("))
      arguments(node);
    node->flag = is_filter(node->text);
    return done(node);
  }

  Node *filters(Node *input) {
    while (skip_op("|"))
      input = filter_call(input);
    return input;
  }

  Node *test(Node *input) {
    int line = current().line;
    advance(); // is
    bool negated = skip_name("not");
    Node *node = make(NodeKind::test, line);
    node->a = input;
    node->text = dotted_name();
    if (is_op("(")) {
      arguments(node);
    } else if ((is(TokenKind::name) || is(TokenKind::string) || is(TokenKind::integer) || is(TokenKind::floating) ||
                is_op("[") || is_op("{")) &&
               !at_any({"else", "or", "and"})) {
      if (is_name("is"))
        fail_here("You cannot chain multiple tests with is");
      node->list.push_back(postfix(primary(false)));
    }
    node->flag = is_test(node->text);
    done(node);
    if (!negated)
      return node;
    Node *inverse = make(NodeKind::logical_not, line);
    inverse->a = node;
    return done(inverse);
  }

  Tree &tree_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, inner_depth_ = 0, blocks_ = 0, loops_ = 0;
  std::vector<std::string> block_names_;
};

} // namespace

void parse(const std::string &source, Tree &tree) {
  Parser(tree, tokenize(source)).run();
  resolve_variables(tree);
}

} // namespace llmrt::text::jinja
