// A small read-only JSON tree that remembers the line of every value, so that an error about a config or a
// topology can name file, line and path. Depth, size and node count are bounded while parsing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

struct JsonNode {
  enum class Kind : uint8_t { Null, Bool, Int, Float, String, Array, Object };
  Kind kind = Kind::Null;
  bool boolean = false;
  uint32_t line = 0; // 1-based, of the value's first character or of its key
  int64_t integer = 0;
  double number = 0;           // also set for Int
  std::string text;            // String; for a number the spelling in the file
  std::string key;             // name in the enclosing object
  std::vector<JsonNode> items; // array elements or object members in file order
};

struct JsonLimits {
  uint64_t bytes = 16u << 20;
  uint64_t nodes = 1u << 20;
  int depth = 64;
};

class JsonFile;

// A value with its place. Every as…() throws an llmc::Error that names the place when the kind does not fit.
class Json {
public:
  JsonNode::Kind kind() const { return node_->kind; }
  bool isNull() const { return kind() == JsonNode::Kind::Null; }
  bool isString() const { return kind() == JsonNode::Kind::String; }
  bool isNumber() const { return kind() == JsonNode::Kind::Int || kind() == JsonNode::Kind::Float; }
  bool isBool() const { return kind() == JsonNode::Kind::Bool; }
  bool isArray() const { return kind() == JsonNode::Kind::Array; }
  bool isObject() const { return kind() == JsonNode::Kind::Object; }

  const std::string &asString() const;
  bool asBool() const;
  int64_t asInt() const; // an integral float such as 1e6 counts as an integer
  double asDouble() const;
  void expectObject() const;
  void expectArray() const;

  size_t size() const { return node_->items.size(); }
  Json at(size_t index) const; // element of an array, or member of an object in file order
  const std::string &key() const { return node_->key; }
  uint32_t line() const { return node_->line; }
  const std::string &path() const { return path_; }

  std::optional<Json> find(std::string_view key) const; // member, null included
  std::optional<Json> get(std::string_view key) const;  // member; absent when null
  bool has(std::string_view key) const { return get(key).has_value(); }
  // Throws unless every member is among `known`; the message offers the nearest one.
  void allowOnly(const std::vector<std::string> &known) const;

  // "config.json:12: /rope_scaling/factor: " + message
  [[noreturn]] void fail(const std::string &message) const;
  std::string where() const;
  std::string text() const; // short spelling for messages: 3, "abc", [4 items]

private:
  friend class JsonFile;
  Json(const JsonFile *file, const JsonNode *node, std::string path)
      : file_(file), node_(node), path_(std::move(path)) {}
  const JsonFile *file_;
  const JsonNode *node_;
  std::string path_;
};

// Owns a parsed text. Json values point into it and must not outlive it.
class JsonFile {
public:
  // `name` stands in messages. Throws llmc::Error with the line for malformed text, duplicate keys in an
  // object, nesting or sizes over the limits.
  JsonFile(std::string_view text, std::string name, const JsonLimits &limits = {});
  JsonFile(const JsonFile &) = delete;
  JsonFile &operator=(const JsonFile &) = delete;

  Json root() const { return Json(this, root_.get(), ""); }
  const std::string &name() const { return name_; }

private:
  std::string name_;
  std::unique_ptr<JsonNode> root_;
};

} // namespace llmc
