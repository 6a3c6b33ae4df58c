// The input is a topo.json.
#include "compiler/import/topology.h"
#include "compiler/support/error.h"

#include <cmath>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    llmc::Topology topology =
        llmc::parseTopology(std::string(reinterpret_cast<const char *>(data), size), "topo.json");
    const int64_t count = static_cast<int64_t>(topology.devices.size());
    for (const llmc::Device &device : topology.devices)
      if (device.memoryBytes <= device.reservedBytes || !(device.memoryBandwidth > 0) ||
          !(device.peakFlops > 0) || device.host < 0 ||
          device.host >= static_cast<int64_t>(topology.hosts.size()))
        std::abort();
    for (const llmc::Link &link : topology.links)
      if (link.a < 0 || link.a >= link.b || link.b >= count || !(link.bandwidth > 0) ||
          !(link.latency >= 0) || topology.find(link.b, link.a) != &link)
        std::abort();
  } catch (const llmc::Error &) {
  }
  return 0;
}
