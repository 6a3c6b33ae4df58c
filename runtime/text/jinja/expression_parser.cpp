// Recursive descent over Jinja's expressions, one function a level of precedence. Every way into itself counts depth.
#include "runtime/text/jinja/expression_parser.h"

#include "runtime/text/jinja/filters.h"

#include <algorithm>

namespace llmrt::text::jinja {

namespace {

constexpr int kMaxDepth = 150; // open brackets and prefixes

} // namespace

bool ExpressionParser::at_tuple_end(Names ends) const {
  return is(TokenKind::variable_end) || is(TokenKind::block_end) || is_op(")") || at_any(ends);
}

Node *ExpressionParser::tuple_or_expression(bool with_conditional, bool parenthesized, Names ends) {
  return tuple(ends, parenthesized, [&] { return with_conditional ? expression() : or_expression(); });
}

Node *ExpressionParser::expression() {
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

Node *ExpressionParser::pair(NodeKind kind, Node *left, Node *right, int line, const std::string &op) {
  Node *node = make(kind, line);
  node->a = left;
  node->b = right;
  node->text = op;
  return done(node);
}

Node *ExpressionParser::or_expression() {
  Depth depth(*this, 2 * kMaxDepth, inner_depth_, "expressions");
  int line = current().line;
  Node *left = and_expression();
  while (skip_name("or")) {
    left = pair(NodeKind::logical_or, left, and_expression(), line);
    line = current().line;
  }
  return left;
}

Node *ExpressionParser::and_expression() {
  int line = current().line;
  Node *left = not_expression();
  while (skip_name("and")) {
    left = pair(NodeKind::logical_and, left, not_expression(), line);
    line = current().line;
  }
  return left;
}

Node *ExpressionParser::not_expression() {
  if (!is_name("not"))
    return compare();
  Depth depth(*this, kMaxDepth, depth_, "expressions");
  Node *node = make(NodeKind::logical_not, current().line);
  advance();
  node->a = not_expression();
  return done(node);
}

Node *ExpressionParser::compare() {
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

Node *ExpressionParser::sum() {
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

Node *ExpressionParser::concat() {
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

Node *ExpressionParser::product() {
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

Node *ExpressionParser::power() {
  int line = current().line;
  Node *left = unary(true);
  while (skip_op("**")) {
    left = pair(NodeKind::binary, left, unary(true), line, "**");
    line = current().line;
  }
  return left;
}

Node *ExpressionParser::unary(bool with_filters) {
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

Node *ExpressionParser::constant(Value value, int line) {
  Node *node = make(NodeKind::constant, line);
  node->value = std::move(value);
  return node;
}

Node *ExpressionParser::primary(bool with_namespace) {
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

Node *ExpressionParser::list_display() {
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

Node *ExpressionParser::dict_display() {
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

Node *ExpressionParser::postfix(Node *node) {
  while (true) {
    if (is_op(".") || is_op("["))
      node = subscript(node);
    else if (is_op("("))
      node = call(node);
    else
      return node;
  }
}

Node *ExpressionParser::filters_and_tests(Node *node) {
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

Node *ExpressionParser::subscript(Node *object) {
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

Node *ExpressionParser::subscript_part() {
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

void ExpressionParser::arguments(Node *node) {
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

Node *ExpressionParser::call(Node *callee) {
  Node *node = make(NodeKind::call, current().line);
  node->a = callee;
  arguments(node);
  return done(node);
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_name();
  while (skip_op("."))
    name += "." + expect_name();
  return name;
}

Node *ExpressionParser::filter_call(Node *input) {
  Node *node = make(NodeKind::filter, current().line);
  node->a = input;
  node->text = dotted_name();
  if (is_op("("))
    arguments(node);
  node->flag = is_filter(node->text);
  return done(node);
}

Node *ExpressionParser::filters(Node *input) {
  while (skip_op("|"))
    input = filter_call(input);
  return input;
}

Node *ExpressionParser::test(Node *input) {
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

} // namespace llmrt::text::jinja
