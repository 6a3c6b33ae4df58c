// A JSON value together with the path that leads to it, so that every complaint about a tokenizer.json
// says where it stands. Thin over simdjson's DOM; the parser that owns the data must outlive the view.
#pragma once

#include <cstdint>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::text {

class JsonView {
public:
  JsonView(simdjson::dom::element value, std::string path) : value_(value), path_(std::move(path)) {}

  const std::string &path() const { return path_; }
  simdjson::dom::element raw() const { return value_; }

  bool is_null() const { return value_.is_null(); }
  bool is_string() const { return value_.is_string(); }
  bool is_array() const { return value_.is_array(); }
  bool is_object() const { return value_.is_object(); }

  // The member, or nothing if it is absent or null. Throws llmrt::Error if this is not an object.
  std::optional<JsonView> find(std::string_view key) const;
  // The member; throws llmrt::Error if it is absent.
  JsonView at(std::string_view key) const;

  std::string_view string() const;
  int64_t integer() const;
  bool boolean() const;
  std::vector<JsonView> items() const; // of an array
  simdjson::dom::array array() const;
  simdjson::dom::object object() const;

  std::string_view string_or(std::string_view key, std::string_view fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;

  // The "type" member, or "" if there is none.
  std::string_view type() const { return string_or("type", ""); }

  [[noreturn]] void fail(const std::string &problem) const;
  [[noreturn]] void unsupported_type(std::string_view supported) const;

private:
  simdjson::dom::element value_;
  std::string path_;
};

} // namespace llmrt::text
