// xxhash is compiled into this file alone, so that no one else needs its header or its library.
#include "runtime/plan/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llmrt::plan {

uint64_t hash_bytes(const void *data, size_t bytes) { return XXH64(data, bytes, 0); }

std::string hash_hex(uint64_t hash) {
  static const char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, hash >>= 4)
    text[i] = digits[hash & 15];
  return text;
}

} // namespace llmrt::plan
