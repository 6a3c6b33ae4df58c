// Python's two formatting languages: "%s of %d" % values and "{} of {:>3}".format(values).
#pragma once

#include "runtime/text/jinja/value.h"

namespace llmrt::text::jinja {

/// `markup`: the format is Markup, so values that are not become escaped.
std::string format_percent(const std::string &format, const Value &values, bool markup);
std::string format_braces(Interpreter &interpreter, const std::string &format, const Arguments &arguments);

/// format(value, spec).
std::string format_value(const Value &value, const std::string &spec);

} // namespace llmrt::text::jinja
