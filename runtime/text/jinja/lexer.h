// Splits a template into tokens: literal text between tags (with white-space control, trim_blocks and lstrip_blocks
// already applied) and the tokens inside of `{{ }}` and `{% %}`. Comments and raw markers do not come out.
#pragma once

#include "runtime/text/jinja/value.h"

#include <string>
#include <vector>

namespace llmrt::text::jinja {

enum class TokenKind : uint8_t {
  data,           ///< literal text
  block_begin,    ///< {%
  block_end,      ///< %}
  variable_begin, ///< {{
  variable_end,   ///< }}
  name,
  string,
  integer,
  floating,
  op, ///< text holds the operator, e.g. "//"
  end,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text; ///< data, name, unescaped string, or operator
  Int integer = 0;
  double floating = 0;
};

/// The last token is `end`. Throws TemplateError with the line.
std::vector<Token> tokenize(const std::string &source);

} // namespace llmrt::text::jinja
