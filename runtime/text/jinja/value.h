// The dynamic values that a template computes with: Python's None, bool, int, float, str, list, tuple, dict and the
// objects that Jinja adds (undefined, namespace, macro, loop, lazy iterators). Containers are immutable, as in the
// sandbox that this follows; only namespaces, loops, cyclers and iterators change after they are made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace llmrt::text::jinja {

struct Node;
struct Scope;
struct FrameInfo;
class Interpreter;

/// Integers are exact up to 127 bits; beyond that an operation fails rather than lose digits.
using Int = __int128;

enum class Kind : uint8_t {
  missing, ///< an unset variable; never leaves the interpreter
  undefined,
  none,
  boolean,
  integer,
  floating,
  string,
  list,
  tuple,
  dict,
  dict_view,
  range,
  iterator,
  name_space,
  macro,
  function,
  loop,
  cycler,
  joiner,
};

/// Work and memory allowed to one rendering. Everything that allocates or loops charges it.
struct Budget {
  int64_t steps = 0;         ///< left; one per node evaluated or 64 bytes handled
  int64_t memory_limit = 0;  ///< bytes of live objects above `memory_base`
  int64_t memory_base = 0;
  int line = 0; ///< of the node being evaluated, for messages
  static thread_local Budget *current;   ///< null outside of a rendering: nothing is limited
  static thread_local int64_t live_bytes; ///< of all objects made minus destroyed by this thread
};

void charge(int64_t steps);                 ///< throws TemplateError when the work budget is spent
void charge_bytes(size_t bytes);            ///< work proportional to a pass over that many bytes
void check_memory(size_t additional_bytes); ///< throws when that many more would exceed the memory budget

struct Object {
  /// `nesting`: 1 + the deepest child, so that no value can be nested deeper than the C++ stack allows.
  explicit Object(size_t bytes, int nesting = 0);
  virtual ~Object();
  Object(const Object &) = delete;
  Object &operator=(const Object &) = delete;
  void grow(size_t bytes); ///< accounts for more memory

  int nesting;

private:
  int64_t bytes_;
};

struct Str;
struct List;
struct Dict;

class Value {
public:
  Value() : kind_(Kind::none), i_(0) {}
  static Value missing() { return Value(Kind::missing); }
  static Value boolean(bool b);
  static Value integer(Int i);
  static Value floating(double d);
  static Value string(std::string s, bool markup = false);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items, bool group = false);
  static Value undefined_name(const std::string &name);
  static Value undefined_hint(std::string message, bool security = false);
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), i_(0), object_(std::move(object)) {}

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool is_missing() const { return kind_ == Kind::missing; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_number() const { return kind_ == Kind::boolean || kind_ == Kind::integer || kind_ == Kind::floating; }
  bool is_integral() const { return kind_ == Kind::boolean || kind_ == Kind::integer; }
  bool as_bool() const { return i_ != 0; }       ///< of a boolean
  Int as_int() const { return i_; }              ///< of an integer or boolean
  double as_double() const;                      ///< of any number
  const std::string &str() const;                ///< of a string
  const Str &str_object() const;
  const std::vector<Value> &items() const;       ///< of a list or tuple
  const Dict &dict() const;
  const std::shared_ptr<Object> &object() const { return object_; }
  template <typename T> T &as() const { return static_cast<T &>(*object_); }

private:
  explicit Value(Kind kind) : kind_(kind), i_(0) {}
  Kind kind_;
  union {
    Int i_;
    double d_;
  };
  std::shared_ptr<Object> object_;
};

struct Str final : Object {
  Str(std::string text, bool is_markup);
  std::string text;    ///< UTF-8
  size_t code_points;  ///< length as Python counts it
  bool markup;         ///< made by `safe` or `escape`
  bool ascii() const { return code_points == text.size(); }
};

struct List final : Object {
  explicit List(std::vector<Value> values, bool is_group);
  std::vector<Value> items;
  bool group; ///< a (grouper, list) pair made by groupby, whose parts have names
};

struct Dict final : Object {
  Dict();
  using Item = std::pair<Value, Value>;
  void set(const Value &key, Value value); ///< throws for an unhashable key
  const Value *find(const Value &key) const;
  const Value *find(std::string_view key) const;
  std::vector<Item> items; ///< in insertion order
private:
  ptrdiff_t index_of(const Value &key, size_t hash) const;
  std::unordered_multimap<size_t, size_t> index_; ///< hash -> position in items
};

struct DictView final : Object {
  enum class What { keys, values, items };
  DictView(Value dict, What what);
  Value dict;
  What what;
  Value at(size_t i) const;
};

struct RangeObject final : Object {
  RangeObject(Int start, Int stop, Int step);
  Int start, stop, step;
  size_t length;
};

/// A one-shot source of values, like a Python generator.
struct Iterator final : Object {
  using Next = std::function<bool(Value &)>; ///< false at the end
  Iterator(Next next, int nesting);
  Next next;
};

struct Undefined final : Object {
  Undefined(std::string message, bool security);
  std::string message; ///< why, for the error raised when the value is used
  bool security;       ///< an attribute that the sandbox refuses
};

struct Namespace final : Object {
  Namespace();
  std::vector<std::pair<std::string, Value>> attributes;
  const Value *find(std::string_view name) const;
  void set(const std::string &name, Value value);
};

/// Positional and keyword arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct MacroObject final : Object {
  MacroObject(const Node *node, std::shared_ptr<Scope> closure);
  const Node *node;
  std::shared_ptr<Scope> closure;
};

struct Function final : Object {
  using Body = std::function<Value(Interpreter &, Arguments &)>;
  Function(std::string name, Body body);
  std::string name;
  Body body;
};

struct LoopObject final : Object {
  explicit LoopObject(Value iterable);
  bool next(Value &out);
  size_t length();
  bool has_next(); ///< looks one item ahead
  Value iterable;
  Iterator::Next source;
  int64_t index0 = -1;
  int depth0 = 0;
  Value after = Value::missing(), current = Value::missing(), before = Value::missing();
  Value last_changed = Value::missing();
  std::optional<size_t> known_length;
  const Node *recursive_node = nullptr; ///< set for `recursive` loops
  std::shared_ptr<Scope> scope;
};

struct Cycler final : Object {
  explicit Cycler(std::vector<Value> values);
  std::vector<Value> items;
  size_t position = 0;
};

struct Joiner final : Object {
  explicit Joiner(Value separator);
  Value separator;
  bool used = false;
};

// --- Python's protocols ---
const char *type_name(const Value &v);               ///< as type(v).__name__
std::string object_type_repr(const Value &v);        ///< as Jinja names it in messages
bool truthy(const Value &v);
bool equal(const Value &a, const Value &b);
bool same_object(const Value &a, const Value &b);    ///< `is`
enum class Order { lt, le, gt, ge };
bool ordered(Order op, const Value &a, const Value &b); ///< throws for types that have no order
size_t hash_value(const Value &v);                      ///< throws for lists, dicts
std::optional<size_t> length_of(const Value &v);        ///< none: the type has no len()
bool is_iterable(const Value &v);
Iterator::Next iterate(const Value &v);                 ///< throws for a value that cannot be iterated
std::vector<Value> to_vector(const Value &v);           ///< list(v)
bool contains(const Value &container, const Value &item);
int nesting_of(const Value &v);

std::string to_str(const Value &v);  ///< str(v)
std::string repr(const Value &v);    ///< repr(v)
std::string repr_float(double d);    ///< shortest text that reads back as d
std::string int_to_string(Int i);
std::string html_escape(std::string_view s);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent; ///< the text of one level
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};
std::string dump_json(const Value &v, const JsonStyle &style); ///< json.dumps(v)

// --- Errors: TemplateError with the line being evaluated ---
[[noreturn]] void fail(const std::string &message);
[[noreturn]] void fail_undefined(const Value &v); ///< an operation on an undefined value
/// Fails if any of the values is undefined, with the message that says why it is.
inline void require_defined(const Value &v) {
  if (v.is_undefined())
    fail_undefined(v);
}

} // namespace llmrt::text::jinja
