// What a plan's ranks take of this machine's memory when they all run on its CPUs, be it a plan for CPUs or one for GPUs
// that they stand in for.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/exec/weight_places.h"
#include "runtime/plan/loaded_plan.h"

namespace llmrt::exec {

struct HostMemory {
  std::vector<WeightPlaces> places; // by rank
  uint32_t num_pages = 0;           // of every rank's KV pool; see below
};

// Whether any rank of the plan belongs on a GPU.
bool stands_in(const plan::LoadedPlan &plan);

// `limit`: bytes that this process may use. A plan for CPUs gets the pages that it says, or what this machine holds of them, which
// may have less memory than the one that it was made for. Where CPUs stand in for GPUs, the pages that filled the GPUs' memory are cut to
// what all sequences together can fill, and to what this machine holds.
// Throws llmrt::Error, before anything is allocated, where weights, activations and one sequence of max_model_len tokens
// do not fit.
HostMemory plan_host_memory(const plan::LoadedPlan &plan, uint64_t limit);

} // namespace llmrt::exec
