// The machine that a plan is made for: hosts, devices and the links between them, read from topo.json
// (docs/topology.md and docs/topology.schema.json describe the format).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

constexpr int64_t kMaxDevices = 512; // of a topology, and so ranks of a plan

struct Device {
  std::string id;   // unique: "gpu0"
  std::string kind; // "cuda" | "cpu"
  std::string name; // "NVIDIA H200"
  std::string uuid, pciId;
  int64_t host = 0; // index into Topology::hosts
  uint64_t memoryBytes = 0;
  uint64_t reservedBytes = 0; // context and driver, before anything of ours
  int64_t capability = 0;     // CUDA compute capability × 10 (80, 89, 90); 0 for cpu
  double memoryBandwidth = 0; // bytes/s
  double peakFlops = 0;       // dense bf16 FLOP/s
};

struct Link {
  int64_t a = 0, b = 0; // device indices
  std::string kind;     // NV18 | PIX | PXB | PHB | NODE | SYS | NET | HOST
  double bandwidth = 0; // bytes/s, one direction
  double latency = 0;   // seconds
  bool p2p = false;
};

struct Topology {
  std::string name;
  std::vector<std::string> hosts;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::string sourceHash;                       // hex XXH64 over the file
  const Link *find(int64_t a, int64_t b) const; // either direction; null when not linked
};

// Reads and checks a topology file; errors (llmc::Error) give "topo.json:LINE: /devices/3/memory: …".
Topology readTopology(const std::string &path);
Topology parseTopology(const std::string &text, const std::string &nameForErrors);

// n CPU devices of this machine sharing its memory evenly: what `llmc compile` uses without --topo.
Topology hostCpuTopology(int64_t n);

} // namespace llmc
