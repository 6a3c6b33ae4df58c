// How much memory this process may use: the machine's, or its container's where that is less.
#pragma once

#include <cstdint>

namespace llmrt {

uint64_t memory_limit_bytes();

} // namespace llmrt
