#include "runtime/support/control_groups.h"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace llmrt {

namespace {

// A file's number, where there is one: "max" is none, and version 1 has -1 for no limit of processor time.
template <typename T> bool read(const std::string &path, T &first) { return static_cast<bool>(std::ifstream(path) >> first); }

void at_most(GroupLimits &limits, double quota, double period) {
  if (quota > 0 && period > 0)
    limits.cores = std::min(limits.cores, static_cast<unsigned>(std::clamp(std::ceil(quota / period), 1.0, 1e6)));
}

void read_folder(const std::string &folder, GroupLimits &limits) {
  for (const char *name : {"/memory.max", "/memory.limit_in_bytes"})
    if (uint64_t bytes = 0; read(folder + name, bytes))
      limits.memory_bytes = std::min(limits.memory_bytes, bytes);
  double quota = 0, period = 0;
  if (std::ifstream in(folder + "/cpu.max"); in >> quota >> period)
    at_most(limits, quota, period);
  if (read(folder + "/cpu.cfs_quota_us", quota) && read(folder + "/cpu.cfs_period_us", period))
    at_most(limits, quota, period);
}

// The folder of a group and those above it, up to the mount. A container may see its own group as that, under a path that leads nowhere.
void read_chain(const std::string &mount, std::string path, GroupLimits &limits) {
  for (; path.size() > 1; path.resize(path.find_last_of('/')))
    read_folder(mount + path, limits);
}

} // namespace

GroupLimits group_limits(const std::string &self, const std::string &root) {
  GroupLimits limits;
  for (const char *mount : {"", "/memory", "/cpu"}) // whatever `self` says, and where it cannot be read
    read_folder(root + mount, limits);
  std::ifstream in(self);
  for (std::string line; std::getline(in, line);) { // number:controllers:path
    const size_t controllers = line.find(':'), path = controllers == std::string::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string::npos || path + 1 >= line.size() || line[path + 1] != '/')
      continue;
    const std::string names = line.substr(controllers + 1, path - controllers - 1);
    if (names.empty()) {
      read_chain(root, line.substr(path + 1), limits);
      continue;
    }
    for (const char *name : {"memory", "cpu"})
      if (("," + names + ",").find(std::string(",") + name + ",") != std::string::npos)
        read_chain(root + "/" + name, line.substr(path + 1), limits);
  }
  return limits;
}

} // namespace llmrt
