// What ranks that meet on the host tell each other, and what the parts of RankLink (world.cpp, world_met.cpp, world_stages.cpp)
// share beside its header.
#pragma once

#include "runtime/exec/cuda/devices.h"
#include "runtime/exec/cuda/world.h"

namespace llmrt::exec::cuda {

// Plain bytes, exchanged through host memory.
struct RankLink::Offer {
  std::byte *data = nullptr;
  int64_t ld = 0, rows = 0, cols = 0;
  cudaEvent_t event = nullptr;
  uint32_t seq = 0;
  ncclUniqueId id{};
};

// Lets kernels of the current device reach the memory of another that it can access.
void enable_access(int to);

constexpr size_t kEvents = 64; // rotated; a step uses each long after its last use has completed
constexpr int64_t kMetScratch = 8 << 20; // of sums of ranks that meet: larger ones go in pieces
// Exchanges number the two meetings of a collective from its place in the plan; this one and the next are no collective's.
constexpr uint32_t kTokensSeq = 0xFFFFFFFE;

} // namespace llmrt::exec::cuda
