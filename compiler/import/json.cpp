// Builds the JSON tree from nlohmann's SAX events. The SAX interface keeps memory bounded: a limit that is
// passed stops the parse at once instead of after a whole document has been built.
#include "compiler/import/json.h"

#include "compiler/import/json_sax.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <unordered_set>

namespace llmc {
namespace {

using Kind = JsonNode::Kind;

class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
public:
  TreeBuilder(JsonNode &root, const std::string &name, const JsonLimits &limits, detail::LineCounter &lines)
      : root_(root), name_(name), limits_(limits), lines_(lines) {}

  bool null() override { return add(Kind::Null), true; }
  bool boolean(bool value) override { return add(Kind::Bool).boolean = value, true; }
  bool number_integer(number_integer_t value) override {
    JsonNode &node = add(Kind::Int);
    node.integer = value;
    node.number = static_cast<double>(value);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    bool fits = value <= static_cast<uint64_t>(INT64_MAX);
    JsonNode &node = add(fits ? Kind::Int : Kind::Float);
    node.integer = fits ? static_cast<int64_t>(value) : 0;
    node.number = static_cast<double>(value);
    return true;
  }
  bool number_float(number_float_t value, const string_t &spelling) override {
    JsonNode &node = add(Kind::Float);
    node.number = value;
    node.text = spelling.substr(0, 40);
    return true;
  }
  bool string(string_t &value) override { return add(Kind::String).text = std::move(value), true; }
  bool binary(binary_t &) override { return false; }

  bool start_object(std::size_t) override { return open(Kind::Object); }
  bool start_array(std::size_t) override { return open(Kind::Array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &value) override {
    if (!keys_.back().insert(value).second)
      fail("the key " + quote(value) + " stands twice in one object");
    key_ = std::move(value);
    keyLine_ = lines_.lastSolidLine;
    return true;
  }

  bool parse_error(std::size_t, const std::string &, const nlohmann::detail::exception &error) override {
    fail("not valid JSON: " + detail::shortSyntaxError(error.what()));
  }

private:
  [[noreturn]] void fail(const std::string &message) const {
    throw Error(name_ + ":" + std::to_string(lines_.lastSolidLine) + ": " + message);
  }

  JsonNode &add(Kind kind) {
    if (++count_ > limits_.nodes)
      fail("more than " + std::to_string(limits_.nodes) + " values, which no file of this kind needs");
    JsonNode *node = &root_;
    bool inObject = false;
    if (!stack_.empty()) {
      inObject = stack_.back()->kind == Kind::Object;
      node = &stack_.back()->items.emplace_back();
    }
    node->kind = kind;
    node->line = inObject ? keyLine_ : lines_.lastSolidLine;
    if (inObject)
      node->key = std::move(key_);
    return *node;
  }

  // The stack's pointers stay valid: only the innermost container grows, and its parents do not move then.
  bool open(Kind kind) {
    if (static_cast<int>(stack_.size()) >= limits_.depth)
      fail("nested deeper than " + std::to_string(limits_.depth) + " levels");
    stack_.push_back(&add(kind));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }

  JsonNode &root_;
  const std::string &name_;
  const JsonLimits &limits_;
  detail::LineCounter &lines_;
  std::vector<JsonNode *> stack_;
  std::vector<std::unordered_set<std::string>> keys_;
  std::string key_;
  uint32_t keyLine_ = 1;
  uint64_t count_ = 0;
};

const char *kindName(Kind kind) {
  switch (kind) {
  case Kind::Null:
    return "null";
  case Kind::Bool:
    return "a boolean";
  case Kind::Int:
    return "an integer";
  case Kind::Float:
    return "a number";
  case Kind::String:
    return "a string";
  case Kind::Array:
    return "a list";
  case Kind::Object:
    return "an object";
  }
  return "?";
}

} // namespace

JsonFile::JsonFile(std::string_view text, std::string name, const JsonLimits &limits)
    : name_(std::move(name)), root_(std::make_unique<JsonNode>()) {
  if (text.size() > limits.bytes)
    throw Error(name_ + " has " + humanBytes(text.size()) + "; at most " + humanBytes(limits.bytes) +
                " are read for a file of this kind");
  if (text.substr(0, 2) == "\xff\xfe" || text.substr(0, 2) == "\xfe\xff")
    throw Error(name_ + " is text in UTF-16; save it as UTF-8");
  detail::LineCounter lines;
  TreeBuilder builder(*root_, name_, limits, lines);
  detail::LineIterator begin(text.data(), &lines), end(text.data() + text.size(), &lines);
  nlohmann::json::sax_parse(begin, end, &builder);
}

std::string Json::where() const {
  return file_->name() + ":" + std::to_string(node_->line) + ": " + (path_.empty() ? "/" : path_);
}

void Json::fail(const std::string &message) const {
  throw Error(where() + ": " + message);
}

std::string Json::text() const {
  switch (kind()) {
  case Kind::Null:
    return "null";
  case Kind::Bool:
    return node_->boolean ? "true" : "false";
  case Kind::Int:
    return std::to_string(node_->integer);
  case Kind::Float:
    return node_->text.empty() ? std::to_string(node_->number) : node_->text;
  case Kind::String:
    return quote(node_->text);
  case Kind::Array:
    return std::string("[").append(std::to_string(size())).append(" items]");
  case Kind::Object:
    return std::string("{").append(std::to_string(size())).append(" members}");
  }
  return "?";
}

const std::string &Json::asString() const {
  if (!isString())
    fail(std::string("expected a string, found ") + kindName(kind()));
  return node_->text;
}

bool Json::asBool() const {
  if (!isBool())
    fail(std::string("expected true or false, found ") + kindName(kind()));
  return node_->boolean;
}

int64_t Json::asInt() const {
  if (kind() == Kind::Float && std::nearbyint(node_->number) == node_->number &&
      std::fabs(node_->number) <= 9007199254740992.0)
    return static_cast<int64_t>(node_->number);
  if (kind() != Kind::Int)
    fail(std::string("expected an integer, found ") + (isNumber() ? text() : kindName(kind())));
  return node_->integer;
}

double Json::asDouble() const {
  if (!isNumber())
    fail(std::string("expected a number, found ") + kindName(kind()));
  return node_->number;
}

void Json::expectObject() const {
  if (!isObject())
    fail(std::string("expected an object, found ") + kindName(kind()));
}

void Json::expectArray() const {
  if (!isArray())
    fail(std::string("expected a list, found ") + kindName(kind()));
}

Json Json::at(size_t index) const {
  const JsonNode &node = node_->items.at(index);
  return Json(file_, &node, path_ + "/" + (isObject() ? node.key : std::to_string(index)));
}

std::optional<Json> Json::find(std::string_view key) const {
  if (isObject())
    for (size_t i = 0; i < node_->items.size(); ++i)
      if (node_->items[i].key == key)
        return at(i);
  return std::nullopt;
}

std::optional<Json> Json::get(std::string_view key) const {
  std::optional<Json> member = find(key);
  if (member && member->isNull())
    return std::nullopt;
  return member;
}

void Json::allowOnly(const std::vector<std::string> &known) const {
  expectObject();
  for (size_t i = 0; i < size(); ++i) {
    Json member = at(i);
    bool found = false;
    for (const std::string &name : known)
      found = found || name == member.key();
    if (found)
      continue;
    std::string nearest = nearestWord(member.key(), known);
    member.fail("unknown key " + quote(member.key()) +
                (nearest.empty() ? "; known here: " + listText(known, 24)
                                 : "; did you mean " + quote(nearest) + "?"));
  }
}

} // namespace llmc
