// The compiler's one exception type outside MLIR passes. Its message is a whole sentence for the user:
// where, both numbers, and the remedy.
#pragma once

#include <stdexcept>
#include <string>

namespace llmc {

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message) : std::runtime_error(message) {}
};

} // namespace llmc
