// The half of the template parser that reads expressions: operators by precedence, literals, subscripts, calls, filters
// and tests. Statements, which contain expressions but are never inside of them, build on it.
#pragma once

#include "runtime/text/jinja/parser_base.h"

namespace llmrt::text::jinja {

class ExpressionParser : public ParserBase {
protected:
  using ParserBase::ParserBase;

  Node *tuple_or_expression(bool with_conditional, bool parenthesized, Names ends);
  Node *expression();
  Node *primary(bool with_namespace);
  Node *filter_call(Node *input);
  Node *filters(Node *input);

  /// Items up to the closing token or one of `ends`: a tuple where there are commas, else the item itself.
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

private:
  bool at_tuple_end(Names ends) const;
  Node *pair(NodeKind kind, Node *left, Node *right, int line, const std::string &op = {});
  Node *or_expression();
  Node *and_expression();
  Node *not_expression();
  Node *compare();
  Node *sum();
  Node *concat();
  Node *product();
  Node *power();
  Node *unary(bool with_filters);
  Node *constant(Value value, int line);
  Node *list_display();
  Node *dict_display();
  Node *postfix(Node *node);
  Node *filters_and_tests(Node *node);
  Node *subscript(Node *object);
  Node *subscript_part();
  void arguments(Node *node);
  Node *call(Node *callee);
  std::string dotted_name();
  Node *test(Node *input);

  int depth_ = 0, inner_depth_ = 0;
};

} // namespace llmrt::text::jinja
