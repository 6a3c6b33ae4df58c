// What a client is told when a request fails: an HTTP status and OpenAI's error object.
#pragma once

#include "runtime/support/error.h"

#include <nlohmann/json.hpp>
#include <string>

namespace llmrt::serve {

class ApiError : public Error {
public:
  ApiError(int http_status, const std::string &message, std::string error_param = {}, std::string error_code = {});
  int status;
  std::string param; ///< the field at fault; empty: none
  std::string code;  ///< e.g. context_length_exceeded; empty: none
};

/// 400 about a field.
ApiError bad_field(const std::string &param, const std::string &message);

/// {"error": {message, type, param, code}}. Text that is not UTF-8 is repaired.
std::string error_body(int status, const std::string &message, const std::string &param, const std::string &code);
std::string error_body(const ApiError &error);

/// JSON text; strings that are not UTF-8 are repaired.
std::string dump(const nlohmann::ordered_json &json);

} // namespace llmrt::serve
