// What the control groups that this process is in allow it: the least on the way from its own to the root, of version 2 or 1.
// systemd's units, containers and their quotas are such groups.
#pragma once

#include <cstdint>
#include <string>

namespace llmrt {

struct GroupLimits {
  uint64_t memory_bytes = UINT64_MAX;
  unsigned cores = ~0u; // of a quota of processor time, rounded up
};
// `self`: as /proc/self/cgroup; `root`: where control groups are mounted.
GroupLimits group_limits(const std::string &self = "/proc/self/cgroup", const std::string &root = "/sys/fs/cgroup");

} // namespace llmrt
