// The topology of this machine seen as n CPU devices, with the memory that a process may use here.
#include "compiler/import/topology.h"

#include "compiler/import/files.h"
#include "compiler/support/error.h"
#include "runtime/support/memory_limit.h"

#include <algorithm>
#include <tuple>

namespace llmc {

Topology hostCpuTopology(int64_t n) {
  if (n < 1 || n > kMaxDevices)
    throw Error("cannot make " + std::to_string(n) + " CPU devices; between 1 and " + std::to_string(kMaxDevices) +
                " are allowed");
  const uint64_t total = llmrt::memory_limit_bytes();

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
