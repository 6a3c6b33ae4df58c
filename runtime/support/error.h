// The one exception type of the runtime. Its message is a whole sentence that a user can act on:
// where, both numbers, and the remedy.
#pragma once

#include <stdexcept>
#include <string>

namespace llmrt {

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message) : std::runtime_error(message) {}
};

} // namespace llmrt
