// What both halves of the template parser stand on: a cursor over the tokens, new nodes, and a guard that bounds how
// deep the parser goes into itself.
#pragma once

#include "runtime/text/jinja/ast.h"
#include "runtime/text/jinja/lexer.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmrt::text::jinja {

class ParserBase {
protected:
  using Names = std::initializer_list<std::string_view>;

  ParserBase(Tree &tree, std::vector<Token> tokens) : tree_(tree), tokens_(std::move(tokens)) {}

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
  bool at_any(Names names) const {
    return is(TokenKind::name) && std::find(names.begin(), names.end(), current().text) != names.end();
  }

  [[noreturn]] void fail_at(const std::string &message, int line) const;
  [[noreturn]] void fail_here(const std::string &message) const { fail_at(message, current().line); }
  std::string describe() const;

  void expect_op(std::string_view op);
  void expect(TokenKind kind, const char *what);
  std::string expect_name();

  // --- nodes ---
  Node *make(NodeKind kind, int line);

  // To be called once a node's children are set.
  Node *done(Node *node);

  struct Depth {
    Depth(const ParserBase &p, int limit, int &counter, const char *what) : counter(counter) {
      if (++counter > limit) {
        --counter;
        p.fail_here(std::string(what) + " are nested deeper than " + std::to_string(limit) + " levels");
      }
    }
    ~Depth() { --counter; }
    int &counter;
  };

  Tree &tree_;

private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

} // namespace llmrt::text::jinja
