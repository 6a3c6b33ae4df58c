// Physical memory and the control group's limit.
#include "runtime/support/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <unistd.h>

namespace llmrt {

uint64_t memory_limit_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t limit = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : UINT64_MAX;
  for (const char *path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(path);
    uint64_t value = 0;
    if (in >> value) // the word "max" is no number and leaves the limit alone
      limit = std::min(limit, value);
  }
  return limit;
}

} // namespace llmrt
