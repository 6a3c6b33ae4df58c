// Loads the weights of all ranks from the checkpoint: every core reads slices, converts them to the dtype that the plan
// wants and the layout of the kernels, and gives them to a sink. No tensor is ever held as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/exec/weight_places.h"
#include "runtime/exec/weight_sink.h"
#include "runtime/plan/loaded_plan.h"

namespace llmrt::exec {

struct WeightLoad {
  std::string folder;   // where relative file paths start; empty: the plan's own folder
  unsigned threads = 1; // reading, converting and packing
  // Called from the thread that called load_weights, a few times a second and once at the end; bytes of device
  // memory. Optional.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
};

// places[r]: where in its region rank r's weights go. The plan must have passed plan::verify(). Throws llmrt::Error, and
// whatever the sink throws, once every thread has ended; what was written is then undefined.
void load_weights(const plan::LoadedPlan &plan, const std::vector<WeightPlaces> &places, WeightSink &sink,
                  const WeightLoad &options);

// The same into host memory. regions[r]: that of rank r.
void load_weights(const plan::LoadedPlan &plan, const std::vector<WeightRegion> &regions, const WeightLoad &options);

} // namespace llmrt::exec
