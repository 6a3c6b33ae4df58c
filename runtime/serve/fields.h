// Reads the fields of a JSON object with their types and ranges checked. A null field counts as absent; fields that
// nobody asked for are reported as unknown.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace llmrt::serve {

class Fields {
public:
  using Json = nlohmann::ordered_json;
  /// `path`: prefix of field names in messages, e.g. "stream_options.". The object must outlive this.
  explicit Fields(const Json &object, std::string path = {});

  /// The raw value; null if absent or null.
  const Json *get(const char *name);
  bool has(const char *name) { return get(name) != nullptr; }

  // Each throws ApiError(400) with the field as param when the type or range is wrong.
  std::optional<bool> boolean(const char *name);
  std::optional<std::string> string(const char *name);
  /// Finite and within [low, high]; `open_low`: above low.
  std::optional<double> number(const char *name, double low, double high, bool open_low = false);
  std::optional<int64_t> integer(const char *name, int64_t low, int64_t high);
  /// A string or a list of strings.
  std::vector<std::string> strings(const char *name, size_t most);
  std::vector<int32_t> token_ids(const char *name, size_t most);

  std::string param(const char *name) const { return path_ + name; }
  /// With those of `add_unknown`.
  std::vector<std::string> unknown() const;
  /// For the fields of an object inside.
  void add_unknown(const Fields &inner);

private:
  const Json &object_;
  std::string path_;
  std::set<std::string> asked_;
  std::vector<std::string> inner_unknown_;
};

/// A JSON number as an int64, if it is one without a fraction (1.0 counts).
std::optional<int64_t> as_integer(const nlohmann::ordered_json &value);

/// The ids of a JSON array; throws ApiError(400) with `param`.
std::vector<int32_t> read_token_ids(const nlohmann::ordered_json &array, const std::string &param);

} // namespace llmrt::serve
