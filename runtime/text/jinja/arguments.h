// Binds the arguments of a call to named parameters, with Python's complaints about what does not fit.
#pragma once

#include "runtime/text/jinja/value.h"

#include <initializer_list>

namespace llmrt::text::jinja {

class Bound {
public:
  /// `names`: the parameters in order, of which the first `required` must be given. `function` is for messages.
  Bound(const std::string &function, const Arguments &arguments, std::initializer_list<const char *> names,
        size_t required);
  bool has(size_t i) const { return !values_[i].is_missing(); }
  const Value &operator[](size_t i) const { return values_[i]; }                 ///< only if has(i)
  Value or_else(size_t i, Value fallback) const { return has(i) ? values_[i] : std::move(fallback); }
  bool flag(size_t i, bool fallback = false) const { return has(i) ? truthy(values_[i]) : fallback; }

private:
  std::vector<Value> values_;
};

/// The string argument, or an error that names the function.
const std::string &require_string(const Value &v, const char *function);

} // namespace llmrt::text::jinja
