// Linux's view of allowed cores, thread binding and thread names.
#include "runtime/support/affinity.h"

#include "runtime/support/control_groups.h"

#include <algorithm>
#include <cstring>
#include <pthread.h>
#include <sched.h>

namespace llmrt {

std::vector<int> allowed_cores() {
  // The mask of a machine with more cores than a cpu_set_t holds needs a larger set; grow until it fits.
  for (int limit = 1024; limit <= 1 << 18; limit *= 2) {
    cpu_set_t *set = CPU_ALLOC(static_cast<size_t>(limit));
    if (!set)
      break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(limit));
    CPU_ZERO_S(bytes, set);
    std::vector<int> cores;
    if (sched_getaffinity(0, bytes, set) == 0)
      for (int core = 0; core < limit; ++core)
        if (CPU_ISSET_S(static_cast<size_t>(core), bytes, set))
          cores.push_back(core);
    CPU_FREE(set);
    if (!cores.empty())
      return cores;
  }
  return {0};
}

unsigned usable_cores() {
  static const unsigned cores = std::min(static_cast<unsigned>(allowed_cores().size()), group_limits().cores);
  return cores;
}

void bind_this_thread(const std::vector<int> &cores) {
  if (cores.empty())
    return;
  const int limit = cores.back() + 1;
  cpu_set_t *set = CPU_ALLOC(static_cast<size_t>(limit));
  if (!set)
    return;
  const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(limit));
  CPU_ZERO_S(bytes, set);
  for (int core : cores)
    CPU_SET_S(static_cast<size_t>(core), bytes, set);
  pthread_setaffinity_np(pthread_self(), bytes, set);
  CPU_FREE(set);
}

void name_this_thread(const char *name) {
  char kept[16] = {};
  std::strncpy(kept, name, sizeof(kept) - 1);
  pthread_setname_np(pthread_self(), kept);
}

} // namespace llmrt
