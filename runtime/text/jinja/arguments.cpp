// Argument binding (see arguments.h).
#include "runtime/text/jinja/arguments.h"

namespace llmrt::text::jinja {

Bound::Bound(const std::string &function, const Arguments &arguments, std::initializer_list<const char *> names,
             size_t required)
    : values_(names.size(), Value::missing()) {
  if (arguments.positional.size() > names.size())
    fail(function + "() takes at most " + std::to_string(names.size()) + " argument(s) but " +
         std::to_string(arguments.positional.size()) + " were given");
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    values_[i] = arguments.positional[i];
  for (const auto &[key, value] : arguments.named) {
    size_t i = 0;
    for (const char *name : names) {
      if (key == name)
        break;
      ++i;
    }
    if (i == names.size())
      fail(function + "() got an unexpected keyword argument '" + key + "'");
    if (has(i))
      fail(function + "() got multiple values for argument '" + key + "'");
    values_[i] = value;
  }
  size_t i = 0;
  for (const char *name : names) {
    if (i < required && !has(i))
      fail(function + "() missing a required argument: '" + name + "'");
    ++i;
  }
}

const std::string &require_string(const Value &v, const char *function) {
  if (v.is_undefined())
    fail_undefined(v);
  if (!v.is_string())
    fail(std::string(function) + " needs a str, not " + type_name(v));
  return v.str();
}

} // namespace llmrt::text::jinja
