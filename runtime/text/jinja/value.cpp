// Objects, their accounting, and construction of values (see value.h).
#include "runtime/text/jinja/value.h"

#include "runtime/text/jinja/chat_template.h"
#include "runtime/text/jinja/unicode.h"

#include <algorithm>

namespace llmrt::text::jinja {

namespace {
constexpr int kMaxNesting = 200; // containers within containers
constexpr size_t kValueBytes = sizeof(Value);

int nesting_of_all(const std::vector<Value> &values) {
  int deepest = 0;
  for (const auto &v : values)
    deepest = std::max(deepest, nesting_of(v));
  return deepest + 1;
}
} // namespace

thread_local Budget *Budget::current = nullptr;
thread_local int64_t Budget::live_bytes = 0;

void fail(const std::string &message) { throw TemplateError(message, Budget::current ? Budget::current->line : 0); }

void fail_undefined(const Value &v) { fail(v.as<Undefined>().message); }

void charge(int64_t steps) {
  Budget *budget = Budget::current;
  if (!budget)
    return;
  budget->steps -= steps;
  if (budget->steps < 0)
    fail("rendering takes more work than its limit allows; the template loops too often or its input is too long");
}

void charge_bytes(size_t bytes) { charge(static_cast<int64_t>(bytes / 64) + 1); }

void check_memory(size_t additional_bytes) {
  const Budget *budget = Budget::current;
  if (!budget)
    return;
  int64_t used = Budget::live_bytes - budget->memory_base;
  if (additional_bytes > static_cast<size_t>(INT64_MAX / 2) ||
      used + static_cast<int64_t>(additional_bytes) > budget->memory_limit)
    fail("rendering needs more memory than its limit of " + std::to_string(budget->memory_limit >> 20) +
         " MiB allows; the template builds values that are too large");
}

Object::Object(size_t bytes, int nesting_depth) : nesting(nesting_depth), bytes_(0) {
  if (nesting > kMaxNesting)
    fail("values are nested deeper than " + std::to_string(kMaxNesting) + " levels");
  check_memory(bytes);
  bytes_ = static_cast<int64_t>(bytes);
  Budget::live_bytes += bytes_;
}

Object::~Object() { Budget::live_bytes -= bytes_; }

void Object::grow(size_t bytes) {
  check_memory(bytes);
  bytes_ += static_cast<int64_t>(bytes);
  Budget::live_bytes += static_cast<int64_t>(bytes);
}

Str::Str(std::string s, bool is_markup)
    : Object(sizeof(Str) + s.size()), text(std::move(s)), code_points(count_code_points(text)), markup(is_markup) {
  charge_bytes(text.size());
}

List::List(std::vector<Value> values, bool is_group)
    : Object(sizeof(List) + values.size() * kValueBytes, nesting_of_all(values)), items(std::move(values)),
      group(is_group) {
  charge(static_cast<int64_t>(items.size() / 8) + 1);
}

Dict::Dict() : Object(sizeof(Dict), 1) {}

DictView::DictView(Value d, What w) : Object(sizeof(DictView), nesting_of(d)), dict(std::move(d)), what(w) {}

Value DictView::at(size_t i) const {
  const auto &item = dict.dict().items[i];
  switch (what) {
  case What::keys:
    return item.first;
  case What::values:
    return item.second;
  case What::items:
    break;
  }
  return Value::tuple({item.first, item.second});
}

RangeObject::RangeObject(Int first, Int end, Int by) : Object(sizeof(RangeObject)), start(first), stop(end), step(by) {
  if (step > 0)
    length = start < stop ? static_cast<size_t>((stop - start - 1) / step + 1) : 0;
  else
    length = start > stop ? static_cast<size_t>((start - stop - 1) / -step + 1) : 0;
}

Iterator::Iterator(Next source, int nesting_depth)
    : Object(sizeof(Iterator) + 128, nesting_depth + 1), next(std::move(source)) {}

Undefined::Undefined(std::string why, bool is_security)
    : Object(sizeof(Undefined) + why.size()), message(std::move(why)), security(is_security) {}

// A namespace counts as flat: cycles through it are legal, and clearing it never recurses (see Interpreter).
Namespace::Namespace() : Object(sizeof(Namespace)) {}

const Value *Namespace::find(std::string_view name) const {
  for (const auto &[key, value] : attributes)
    if (key == name)
      return &value;
  return nullptr;
}

void Namespace::set(const std::string &name, Value value) {
  charge(static_cast<int64_t>(attributes.size() / 8) + 1);
  for (auto &[key, old] : attributes)
    if (key == name) {
      old = std::move(value);
      return;
    }
  grow(kValueBytes + sizeof(std::string) + name.size());
  attributes.emplace_back(name, std::move(value));
}

MacroObject::MacroObject(const Node *n, std::shared_ptr<Scope> c)
    : Object(sizeof(MacroObject)), node(n), closure(std::move(c)) {}

Function::Function(std::string n, Body b) : Object(sizeof(Function) + 64), name(std::move(n)), body(std::move(b)) {}

LoopObject::LoopObject(Value v)
    : Object(sizeof(LoopObject), nesting_of(v)), iterable(std::move(v)), source(iterate(iterable)) {}

bool LoopObject::next(Value &out) {
  Value value;
  if (!after.is_missing()) {
    value = std::move(after);
    after = Value::missing();
  } else if (!source(value)) {
    return false;
  }
  ++index0;
  before = std::move(current);
  current = value;
  out = std::move(value);
  return true;
}

bool LoopObject::has_next() {
  if (after.is_missing()) {
    Value value;
    if (!source(value))
      return false;
    after = std::move(value);
  }
  return true;
}

size_t LoopObject::length() {
  if (!known_length) {
    if (auto n = length_of(iterable); n && !iterable.is_undefined()) {
      known_length = n;
    } else {
      // An iterator has no length: take in what is left of it.
      auto rest = std::make_shared<std::vector<Value>>();
      for (Value v; source(v);)
        rest->push_back(v);
      known_length = rest->size() + static_cast<size_t>(index0 + 1) + (after.is_missing() ? 0 : 1);
      grow(rest->size() * kValueBytes);
      source = [rest, i = size_t{0}](Value &out) mutable {
        if (i >= rest->size())
          return false;
        out = (*rest)[i++];
        return true;
      };
    }
  }
  return *known_length;
}

Cycler::Cycler(std::vector<Value> values)
    : Object(sizeof(Cycler) + values.size() * kValueBytes, nesting_of_all(values)), items(std::move(values)) {}

Joiner::Joiner(Value s) : Object(sizeof(Joiner)), separator(std::move(s)) {}

// --- Value ---

Value Value::boolean(bool b) {
  Value v(Kind::boolean);
  v.i_ = b;
  return v;
}

Value Value::integer(Int i) {
  Value v(Kind::integer);
  v.i_ = i;
  return v;
}

Value Value::floating(double d) {
  Value v(Kind::floating);
  v.d_ = d;
  return v;
}

Value Value::string(std::string s, bool markup) {
  return Value(Kind::string, std::make_shared<Str>(std::move(s), markup));
}

Value Value::list(std::vector<Value> items) {
  return Value(Kind::list, std::make_shared<List>(std::move(items), false));
}

Value Value::tuple(std::vector<Value> items, bool group) {
  return Value(Kind::tuple, std::make_shared<List>(std::move(items), group));
}

Value Value::undefined_name(const std::string &name) {
  return undefined_hint(repr(Value::string(name)) + " is undefined");
}

Value Value::undefined_hint(std::string message, bool security) {
  return Value(Kind::undefined, std::make_shared<Undefined>(std::move(message), security));
}

double Value::as_double() const { return kind_ == Kind::floating ? d_ : static_cast<double>(i_); }

const std::string &Value::str() const { return static_cast<const Str &>(*object_).text; }
const Str &Value::str_object() const { return static_cast<const Str &>(*object_); }
const std::vector<Value> &Value::items() const { return static_cast<const List &>(*object_).items; }
const Dict &Value::dict() const { return static_cast<const Dict &>(*object_); }

int nesting_of(const Value &v) { return v.object() ? v.object()->nesting : 0; }

// --- Dict ---

ptrdiff_t Dict::index_of(const Value &key, size_t hash) const {
  if (index_.empty()) {
    for (size_t i = 0; i < items.size(); ++i)
      if (equal(items[i].first, key))
        return static_cast<ptrdiff_t>(i);
    return -1;
  }
  auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (equal(items[it->second].first, key))
      return static_cast<ptrdiff_t>(it->second);
  return -1;
}

void Dict::set(const Value &key, Value value) {
  constexpr size_t kIndexFrom = 16; // a linear scan is as fast below
  size_t hash = hash_value(key);
  int deepest = std::max(nesting_of(key), nesting_of(value)) + 1;
  if (deepest > nesting) {
    nesting = deepest;
    if (nesting > kMaxNesting)
      fail("values are nested deeper than " + std::to_string(kMaxNesting) + " levels");
  }
  charge(1);
  if (ptrdiff_t i = index_of(key, hash); i >= 0) {
    items[static_cast<size_t>(i)].second = std::move(value);
    return;
  }
  grow(2 * kValueBytes + 48);
  items.emplace_back(key, std::move(value));
  if (items.size() == kIndexFrom) {
    for (size_t i = 0; i < items.size(); ++i)
      index_.emplace(hash_value(items[i].first), i);
  } else if (items.size() > kIndexFrom) {
    index_.emplace(hash, items.size() - 1);
  }
}

const Value *Dict::find(const Value &key) const {
  size_t hash = hash_value(key);
  ptrdiff_t i = index_of(key, hash);
  return i < 0 ? nullptr : &items[static_cast<size_t>(i)].second;
}

const Value *Dict::find(std::string_view key) const {
  if (index_.empty()) {
    for (const auto &[k, v] : items)
      if (k.is_string() && k.str() == key)
        return &v;
    return nullptr;
  }
  auto [begin, end] = index_.equal_range(std::hash<std::string_view>{}(key));
  for (auto it = begin; it != end; ++it)
    if (const auto &item = items[it->second]; item.first.is_string() && item.first.str() == key)
      return &item.second;
  return nullptr;
}

} // namespace llmrt::text::jinja
