// Errors in OpenAI's form.
#include "runtime/serve/api_error.h"

namespace llmrt::serve {

ApiError::ApiError(int http_status, const std::string &message, std::string error_param, std::string error_code)
    : Error(message), status(http_status), param(std::move(error_param)), code(std::move(error_code)) {}

ApiError bad_field(const std::string &param, const std::string &message) { return ApiError(400, message, param); }

static const char *error_type(int status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 404:
    return "not_found_error";
  case 429:
    return "rate_limit_error";
  case 500:
    return "server_error";
  case 503:
    return "service_unavailable_error";
  default:
    return "invalid_request_error";
  }
}

std::string error_body(int status, const std::string &message, const std::string &param, const std::string &code) {
  nlohmann::ordered_json error;
  error["message"] = message;
  error["type"] = error_type(status);
  error["param"] = param.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(param);
  error["code"] = code.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(code);
  return dump({{"error", std::move(error)}});
}

std::string error_body(const ApiError &error) {
  return error_body(error.status, error.what(), error.param, error.code);
}

std::string dump(const nlohmann::ordered_json &json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace llmrt::serve
