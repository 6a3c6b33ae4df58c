// Which devices the ranks get. Known from the topology alone, so that the importer's types can follow the devices that
// are used, before there is a module to run passes on.
#pragma once

#include "dialects/dist/DistDialect.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <string>

namespace llmc::dist {

// The devices that ranks may get: the GPUs, or, where there are none, the CPUs. No plan runs on both.
llvm::SmallVector<int64_t> usableDevices(TopologyAttr topology);

struct Placement {
  llvm::SmallVector<int64_t> devices; // of each rank, stage by stage: tp * pp of them, or none
  std::string why;                    // one sentence where there are none
};

// Precondition: 1 <= tp, pp and tp * pp <= usableDevices(topology).size().
Placement placeRanks(TopologyAttr topology, int64_t tp, int64_t pp);

} // namespace llmc::dist
