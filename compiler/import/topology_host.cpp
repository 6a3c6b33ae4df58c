// The topology of this machine seen as n CPU devices: memory from /proc/meminfo and the cgroup's limit.
#include "compiler/import/topology.h"

#include "compiler/import/files.h"
#include "compiler/support/error.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <thread>

namespace llmc {
namespace {

// "MemTotal:  16315784 kB" -> bytes; 0 when there is no such line.
uint64_t memInfo(const char *key) {
  std::ifstream in("/proc/meminfo");
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string name;
    uint64_t kib = 0;
    if (words >> name >> kib && name == std::string(key) + ":")
      return kib * 1024;
  }
  return 0;
}

// A cgroup limit file holds a number, or "max"; version 1 writes a huge number for "none".
uint64_t limitFile(const std::string &path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word) || word.empty() || word.size() > 18 ||
      !std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
    return UINT64_MAX;
  return std::stoull(word);
}

// The smallest limit on the way from this process's cgroup to the root, version 2 or 1.
uint64_t cgroupLimit() {
  uint64_t limit = std::min(limitFile("/sys/fs/cgroup/memory.max"),
                            limitFile("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    if (line.compare(0, 3, "0::") != 0)
      continue;
    std::string path = line.substr(3);
    while (!path.empty() && path != "/") {
      limit = std::min(limit, limitFile("/sys/fs/cgroup" + path + "/memory.max"));
      path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
    }
  }
  return limit;
}

} // namespace

Topology hostCpuTopology(int64_t n) {
  if (n < 1 || n > kMaxDevices)
    throw Error("cannot make " + std::to_string(n) + " CPU devices; between 1 and " + std::to_string(kMaxDevices) +
                " are allowed");
  const uint64_t total = std::min(memInfo("MemTotal"), cgroupLimit());
  if (total == 0)
    throw Error(
        "cannot read this machine's memory from /proc/meminfo; describe it in a topology file (--topo)");

  // Nominal speeds, the same on every machine so that plans are: only their ratios matter to the planner, and
  // all devices here are alike.
  constexpr double kBandwidth = 20e9, kFlops = 200e9;
  Topology topology;
  topology.name = "host-cpu-" + std::to_string(n);
  topology.hosts = {"localhost"};
  std::string identity = topology.name + " " + std::to_string(total);
  for (int64_t i = 0; i < n; ++i) {
    Device device;
    device.id = "cpu" + std::to_string(i);
    device.kind = "cpu";
    device.name = "host CPU, 1/" + std::to_string(n);
    device.memoryBytes = total / static_cast<uint64_t>(n);
    // A tenth for the operating system and the rest of this process.
    device.reservedBytes = device.memoryBytes / 10;
    device.memoryBandwidth = kBandwidth / static_cast<double>(n);
    device.peakFlops = kFlops / static_cast<double>(n);
    topology.devices.push_back(std::move(device));
    for (int64_t j = 0; j < i; ++j)
      topology.links.push_back({j, i, "HOST", kBandwidth / static_cast<double>(n) / 2, 1e-6, false});
  }
  std::sort(topology.links.begin(), topology.links.end(),
            [](const Link &x, const Link &y) { return std::tie(x.a, x.b) < std::tie(y.a, y.b); });
  topology.sourceHash = hashHex(identity);
  return topology;
}

} // namespace llmc
