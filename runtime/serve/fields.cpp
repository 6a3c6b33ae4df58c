// Typed access to request fields (see fields.h).
#include "runtime/serve/fields.h"

#include "runtime/serve/api_error.h"

#include <cmath>
#include <cstdio>

namespace llmrt::serve {

using Json = nlohmann::ordered_json;

namespace {

std::string shown(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

[[noreturn]] void wrong_type(const std::string &param, const char *wanted, const Json &value) {
  throw bad_field(param, "'" + param + "' must be " + wanted + ", not " + value.type_name());
}

} // namespace

Fields::Fields(const Json &object, std::string path) : object_(object), path_(std::move(path)) {}

const Json *Fields::get(const char *name) {
  asked_.insert(name);
  auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

std::optional<bool> Fields::boolean(const char *name) {
  const Json *value = get(name);
  if (!value)
    return std::nullopt;
  if (!value->is_boolean())
    wrong_type(param(name), "true or false", *value);
  return value->get<bool>();
}

std::optional<std::string> Fields::string(const char *name) {
  const Json *value = get(name);
  if (!value)
    return std::nullopt;
  if (!value->is_string())
    wrong_type(param(name), "a string", *value);
  return value->get<std::string>();
}

std::optional<double> Fields::number(const char *name, double low, double high, bool open_low) {
  const Json *value = get(name);
  if (!value)
    return std::nullopt;
  if (!value->is_number())
    wrong_type(param(name), "a number", *value);
  auto v = value->get<double>();
  if (!(open_low ? v > low : v >= low) || !(v <= high))
    throw bad_field(param(name), "'" + param(name) + "' is " + shown(v) + "; it must be " +
                                     (open_low ? "above " : "at least ") + shown(low) +
                                     (high < 1e30 ? " and at most " + shown(high) : ""));
  return v;
}

std::optional<int64_t> as_integer(const Json &value) {
  if (value.is_number_unsigned()) {
    auto v = value.get<uint64_t>();
    return v <= static_cast<uint64_t>(INT64_MAX) ? std::optional<int64_t>(static_cast<int64_t>(v)) : std::nullopt;
  }
  if (value.is_number_integer())
    return value.get<int64_t>();
  if (value.is_number_float()) {
    auto v = value.get<double>();
    if (std::floor(v) == v && std::fabs(v) < 9e15)
      return static_cast<int64_t>(v);
  }
  return std::nullopt;
}

std::optional<int64_t> Fields::integer(const char *name, int64_t low, int64_t high) {
  const Json *value = get(name);
  if (!value)
    return std::nullopt;
  if (!value->is_number())
    wrong_type(param(name), "an integer", *value);
  auto v = as_integer(*value);
  if (!v || *v < low || *v > high)
    throw bad_field(param(name), "'" + param(name) + "' is " + value->dump() + "; it must be an integer" +
                                     (low > INT64_MIN ? " of at least " + std::to_string(low) : "") +
                                     (high < INT64_MAX ? " and at most " + std::to_string(high) : ""));
  return v;
}

std::vector<std::string> Fields::strings(const char *name, size_t most) {
  const Json *value = get(name);
  if (!value)
    return {};
  if (value->is_string())
    return {value->get<std::string>()};
  if (!value->is_array())
    wrong_type(param(name), "a string or a list of strings", *value);
  if (value->size() > most)
    throw bad_field(param(name), "'" + param(name) + "' has " + std::to_string(value->size()) + " entries; at most " +
                                     std::to_string(most) + " are allowed");
  std::vector<std::string> out;
  for (const Json &item : *value) {
    if (!item.is_string())
      throw bad_field(param(name), "'" + param(name) + "' must be a string or a list of strings; entry " +
                                       std::to_string(out.size()) + " is " + item.type_name());
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<int32_t> Fields::token_ids(const char *name, size_t most) {
  const Json *value = get(name);
  if (!value)
    return {};
  if (!value->is_array())
    wrong_type(param(name), "a list of token ids", *value);
  if (value->size() > most)
    throw bad_field(param(name), "'" + param(name) + "' has " + std::to_string(value->size()) + " entries; at most " +
                                     std::to_string(most) + " are allowed");
  return read_token_ids(*value, param(name));
}

std::vector<int32_t> read_token_ids(const Json &array, const std::string &param) {
  std::vector<int32_t> ids;
  ids.reserve(array.size());
  for (const Json &item : array) {
    auto v = as_integer(item);
    if (!v || *v < 0 || *v > INT32_MAX)
      throw bad_field(param, "'" + param + "' must be a list of token ids; entry " + std::to_string(ids.size()) +
                                 " is " + (item.is_number() ? item.dump() : item.type_name()));
    ids.push_back(static_cast<int32_t>(*v));
  }
  return ids;
}

void Fields::add_unknown(const Fields &inner) {
  const auto names = inner.unknown();
  inner_unknown_.insert(inner_unknown_.end(), names.begin(), names.end());
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> names = inner_unknown_;
  for (const auto &[key, value] : object_.items())
    if (!value.is_null() && !asked_.count(key))
      names.push_back(path_ + key);
  return names;
}

} // namespace llmrt::serve
