// Where each weight of a rank lies in the memory of a backend, and in which layout. The plan says so for the devices it
// was made for; CPUs that stand in for GPUs arrange the weights as their own kernels want them.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/plan_generated.h"

namespace llmrt::exec {

struct WeightPlace {
  plan::Layout layout = plan::Layout::RowMajor;
  uint64_t offset = 0, bytes = 0; // in the rank's weight region
};

struct WeightPlaces {
  std::vector<WeightPlace> weights; // by index into Program.weights
  uint64_t bytes = 0;               // of the whole region
};

// As the plan has them.
WeightPlaces planned_places(const plan::Program &program);

// As the CPU's kernels read them: matrices that linear multiplies with are packed. Where the plan has all of them packed
// (it was made for CPUs) these are the plan's own places; otherwise the region is a new one, and may be a little larger.
WeightPlaces host_places(const plan::Program &program);

} // namespace llmrt::exec
