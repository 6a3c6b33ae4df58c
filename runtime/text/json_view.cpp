// Typed access with error sentences of the form "tokenizer.json: <path> <problem>".
#include "runtime/text/json_view.h"

#include "runtime/support/error.h"

namespace llmrt::text {

void JsonView::fail(const std::string &problem) const {
  throw Error("tokenizer.json: " + (path_.empty() ? std::string("the document") : path_) + " " + problem);
}

void JsonView::unsupported_type(std::string_view supported) const {
  fail("has type \"" + std::string(type()) + "\", which is not supported; supported are " +
       std::string(supported) + ".");
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  simdjson::dom::element member;
  if (object().at_key(key).get(member) != simdjson::SUCCESS || member.is_null())
    return std::nullopt;
  return JsonView(member, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
}

JsonView JsonView::at(std::string_view key) const {
  auto member = find(key);
  if (!member)
    fail("lacks the member \"" + std::string(key) + "\".");
  return *member;
}

std::string_view JsonView::string() const {
  std::string_view out;
  if (value_.get_string().get(out) != simdjson::SUCCESS)
    fail("must be a string.");
  return out;
}

int64_t JsonView::integer() const {
  int64_t out = 0;
  if (value_.get_int64().get(out) != simdjson::SUCCESS)
    fail("must be an integer.");
  return out;
}

bool JsonView::boolean() const {
  bool out = false;
  if (value_.get_bool().get(out) != simdjson::SUCCESS)
    fail("must be true or false.");
  return out;
}

simdjson::dom::array JsonView::array() const {
  simdjson::dom::array out;
  if (value_.get_array().get(out) != simdjson::SUCCESS)
    fail("must be an array.");
  return out;
}

simdjson::dom::object JsonView::object() const {
  simdjson::dom::object out;
  if (value_.get_object().get(out) != simdjson::SUCCESS)
    fail("must be an object.");
  return out;
}

std::vector<JsonView> JsonView::items() const {
  std::vector<JsonView> out;
  for (simdjson::dom::element item : array())
    out.emplace_back(item, path_ + "[" + std::to_string(out.size()) + "]");
  return out;
}

std::string_view JsonView::string_or(std::string_view key, std::string_view fallback) const {
  auto member = find(key);
  return member ? member->string() : fallback;
}

bool JsonView::boolean_or(std::string_view key, bool fallback) const {
  auto member = find(key);
  return member ? member->boolean() : fallback;
}

} // namespace llmrt::text
