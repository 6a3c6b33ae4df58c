// Physical memory and the control groups' limit.
#include "runtime/support/memory_limit.h"

#include "runtime/support/control_groups.h"

#include <algorithm>
#include <unistd.h>

namespace llmrt {

uint64_t memory_limit_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t limit = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : UINT64_MAX;
  return std::min(limit, group_limits().memory_bytes);
}

} // namespace llmrt
