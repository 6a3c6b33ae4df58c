// Text helpers with Python's semantics over UTF-8: code-point counts and slices, white space, case mapping and
// character classes. Strings are UTF-8 everywhere; a "position" here is a code point, an "offset" is a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace llmrt::text::jinja {

/// Byte offset of the first ill-formed sequence (surrogates and overlong forms included), or npos if there is none.
size_t find_invalid_utf8(std::string_view s);

/// Number of code points. `s` is valid UTF-8.
size_t count_code_points(std::string_view s);

/// Decodes the code point at `offset` and moves `offset` past it.
char32_t next_code_point(std::string_view s, size_t &offset);

void append_code_point(std::string &out, char32_t c);

/// Byte offset of code point number `position` (clamped to the end of the string).
size_t offset_of(std::string_view s, size_t position);

bool is_space(char32_t c);      ///< str.isspace() of one character, also `\s`
bool is_line_break(char32_t c); ///< where str.splitlines() breaks
bool is_printable(char32_t c);  ///< what repr() leaves unescaped
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
bool is_identifier_part(char32_t c); ///< letters, digits, underscore, combining marks
bool is_identifier_start(char32_t c);

std::string to_upper(std::string_view s);
std::string to_lower(std::string_view s);
std::string to_title(std::string_view s);   ///< str.title()
std::string capitalize(std::string_view s); ///< str.capitalize()
std::string swap_case(std::string_view s);
std::string case_fold(std::string_view s);

enum class Side { both, left, right };
/// str.strip family; `chars` == nullptr strips white space, otherwise any code point of *chars.
std::string_view strip(std::string_view s, Side side, const std::string_view *chars = nullptr);

} // namespace llmrt::text::jinja
