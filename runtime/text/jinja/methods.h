// Attributes of values: the methods of str, list, tuple, dict and numbers that a sandboxed template may call.
#pragma once

#include "runtime/text/jinja/value.h"

namespace llmrt::text::jinja {

/// The attribute or bound method; missing if the type has none of that name. A method that would modify its object
/// comes back as an undefined value that fails when used.
Value find_attribute(const Value &object, const std::string &name);

Value string_method(const Value &object, const std::string &name); ///< missing if there is none

/// s.split(separator, limit) and s.rsplit; a null separator splits at white space.
std::vector<Value> split(const Str &s, const std::string *separator, int64_t limit, bool from_right);
std::vector<std::string> split_lines(const std::string &s, bool keep_ends);
std::string replace_all(const std::string &s, const std::string &from, const std::string &to, int64_t limit);

bool all_cased(const std::string &s, bool upper); ///< s.isupper() or s.islower()

/// A callable value.
Value make_function(std::string name, Function::Body body);

} // namespace llmrt::text::jinja
