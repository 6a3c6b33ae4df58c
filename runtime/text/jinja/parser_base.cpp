// Tokens as error messages name them, and the bound on the height of the tree.
#include "runtime/text/jinja/parser_base.h"

#include "runtime/text/jinja/chat_template.h"

namespace llmrt::text::jinja {

namespace {

constexpr int kMaxHeight = 400; // of the tree, e.g. links in a chain of +

} // namespace

void ParserBase::fail_at(const std::string &message, int line) const { throw TemplateError(message, line); }

std::string ParserBase::describe() const {
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

void ParserBase::expect_op(std::string_view op) {
  if (!skip_op(op))
    fail_here("expected '" + std::string(op) + "', got " + describe());
}

void ParserBase::expect(TokenKind kind, const char *what) {
  if (!is(kind))
    fail_here(std::string("expected ") + what + ", got " + describe());
  advance();
}

std::string ParserBase::expect_name() {
  if (!is(TokenKind::name))
    fail_here("expected a name, got " + describe());
  std::string name = current().text;
  advance();
  return name;
}

Node *ParserBase::make(NodeKind kind, int line) {
  tree_.nodes.emplace_back();
  Node &node = tree_.nodes.back();
  node.kind = kind;
  node.line = line;
  return &node;
}

Node *ParserBase::done(Node *node) {
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

} // namespace llmrt::text::jinja
