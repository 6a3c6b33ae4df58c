// Jinja's filters and tests, by name.
#pragma once

#include "runtime/text/jinja/value.h"

namespace llmrt::text::jinja {

using FilterFunction = Value (*)(Interpreter &, const Value &input, Arguments &);
using TestFunction = bool (*)(Interpreter &, const Value &input, Arguments &);

FilterFunction find_filter(const std::string &name); ///< null if there is none
TestFunction find_test(const std::string &name);     ///< null if there is none
inline bool is_filter(const std::string &name) { return find_filter(name) != nullptr; }
inline bool is_test(const std::string &name) { return find_test(name) != nullptr; }

// The tables that find_filter searches, one per file.
struct NamedFilter {
  const char *name;
  FilterFunction function;
};
struct FilterTable {
  const NamedFilter *begin, *end;
};
FilterTable text_filters();
FilterTable sequence_filters();
FilterTable number_filters();

} // namespace llmrt::text::jinja
