// Fills the weight regions of all ranks from the checkpoint: every core reads slices, converts them to the dtype
// that the plan wants, and packs them into the layout of the kernels. No tensor is ever held as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/exec/weight_places.h"
#include "runtime/plan/loaded_plan.h"

namespace llmrt::exec {

// The memory of one rank's weights: places.bytes bytes, zero, aligned to 256.
struct WeightRegion {
  std::byte *data = nullptr;
  WeightPlaces places;
};

struct WeightLoad {
  std::string folder;   // where relative file paths start; empty: the plan's own folder
  unsigned threads = 1; // reading, converting and packing
  // Called from the thread that called load_weights, a few times a second and once at the end; bytes of device
  // memory. Optional.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
};

// regions[r]: that of rank r. The plan must have passed plan::verify().
// Throws llmrt::Error; the regions' contents are then undefined.
void load_weights(const plan::LoadedPlan &plan, const std::vector<WeightRegion> &regions, const WeightLoad &options);

} // namespace llmrt::exec
