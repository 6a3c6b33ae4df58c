// XXH64 as plans use it: header hashes of weight files, hashes of configs and of long strings in dumps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace llmrt::plan {

// XXH64 with seed 0.
uint64_t hash_bytes(const void *data, size_t bytes);

// 16 lower-case hex digits.
std::string hash_hex(uint64_t hash);

} // namespace llmrt::plan
