// The syntax tree of a template. One node type serves expressions and statements; the table at NodeKind says which
// fields each kind uses. Nodes live in a Tree and point to each other freely.
#pragma once

#include "runtime/text/jinja/value.h"

#include <deque>
#include <string>
#include <vector>

namespace llmrt::text::jinja {

enum class NodeKind : uint8_t {
  // Expressions
  constant,   // value
  name,       // text; access; ref
  ns_ref,     // text.attribute as an assignment target; ref
  tuple,      // list
  list,       // list
  dict,       // list: key, value, key, value ...
  conditional, // a ? b : c as `b if a else c`; c may be null
  filter,     // a | text(list, named, *b, **c); a is null in a filter block
  test,       // a is text(list, named, *b, **c)
  call,       // a(list, named, *b, **c)
  keyword,    // text = a
  attribute,  // a.text
  item,       // a[b]
  slice,      // a:b:c, each may be null; only inside of item
  concat,     // list joined by ~
  compare,    // a, then ops[i] list[i]
  binary,     // a text b
  logical_and, logical_or, // a, b
  logical_not, negative, positive, // a
  // Statements
  output,       // list
  for_loop,     // a: target, b: iterable, c: filter or null, body, other: else, flag: recursive
  if_block,     // a, body, list: elif nodes, other: else
  macro,        // text, parameters, defaults, body
  call_block,   // a: call (null for a generation block), parameters, defaults, body
  filter_block, // a: filter, body
  with_block,   // list: targets, named: values, body
  assign,       // a: target, b
  assign_block, // a: target, b: filter or null, body
  block,        // text, body
  scope,        // body, with variables of its own
  break_loop, continue_loop,
};

enum class Access : uint8_t { load, store, param };

/// Where a variable lives: `hops` scopes outwards, slot number `slot`.
struct VariableRef {
  int hops = -1;
  int slot = -1;
};

/// What a scope does to its variables when it is entered.
struct FrameInfo {
  enum class Init : uint8_t { parameter, resolve, alias, unset };
  struct Slot {
    std::string name;
    Init init;
    VariableRef outer; ///< for alias, seen from the enclosing scope
  };
  std::vector<Slot> slots;
  int slot_of(const std::string &name) const; ///< -1 if there is none
};

struct Node {
  NodeKind kind;
  Access access = Access::load;
  bool flag = false;
  bool uses_loop = false;                                               // for_loop
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;  // macro, call_block
  int line = 0;
  int height = 1; ///< of the tree below, bounded by the parser
  std::string text;
  std::string attribute;
  Value value;
  VariableRef ref;
  Node *a = nullptr, *b = nullptr, *c = nullptr;
  std::vector<Node *> list, named, parameters, defaults, body, other;
  std::vector<std::string> ops;
  FrameInfo frame, else_frame, test_frame; // the scopes that a statement opens
};

struct Tree {
  std::deque<Node> nodes;
  std::vector<Node *> body;
  FrameInfo root;
};

} // namespace llmrt::text::jinja
