// Parses the body of a request as a JSON object, within bounds: what a client sends cannot make the parser recurse
// deeply, allocate far more than it sent, or take quadratic time.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace llmrt::serve {

/// Throws ApiError(400).
nlohmann::ordered_json parse_body(std::string_view body);

} // namespace llmrt::serve
