// Where a plan's ranks run on a machine of GPUs, and whether that machine is what the plan was made for. What devices there are
// is told by the caller, so that none of this needs a GPU.
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/plan/loaded_plan.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace llmrt::exec {

// A GPU as the driver shows it.
struct LiveDevice {
  std::string name;
  std::string uuid, pci_id;    // "GPU-…", "0000:1b:00.0"
  unsigned capability = 0;     // 90: compute capability 9.0
};

struct LiveMachine {
  std::vector<LiveDevice> devices; // by the numbers that CUDA gives them
  std::string hidden_by;           // " (CUDA_VISIBLE_DEVICES shows '0')", or empty where nothing hides any
};

// The device of each rank: by UUID or PCI id where the plan names one, otherwise by the device's place in the topology. `share`: the
// places of a larger topology are counted round the devices there are. Throws llmrt::Error where there are too few, where a named
// one is missing, and where one is too old for the plan's kernels.
std::vector<int> place_ranks(const plan::LoadedPlan &plan, const LiveMachine &machine, bool share);

// Bytes of a device, with what this process has taken for its context gone.
struct DeviceRoom {
  uint64_t free = 0, total = 0;
};

// Whether what the ledgers of a device's ranks count on is free there now. Throws llmrt::Error that names the device, both numbers,
// what of the ledger does not fit, and what to change. `room`: by device.
void check_room(const plan::LoadedPlan &plan, const LiveMachine &machine, const std::vector<int> &placement,
                const std::map<int, DeviceRoom> &room);

// Whether the plan has these ranks on one device, or joins their devices by a link with peer-to-peer access. Where it does not, they
// do not read each other's memory, whatever the machine says: peer-to-peer copies that lose data are known.
bool joined_by_peers(const plan::LoadedPlan &plan, uint32_t a, uint32_t b);

// Whether devices that the plan joins by a link with peer-to-peer access have it. `reaches(a, b)`: kernels on a can use memory of b.
// What goes through host memory or NCCL alone, as `collectives` says, needs none. Throws llmrt::Error.
void check_peers(const plan::LoadedPlan &plan, const std::vector<int> &placement, Collectives collectives,
                 const std::function<bool(int, int)> &reaches);

} // namespace llmrt::exec
