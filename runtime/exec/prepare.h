// Turns a rank's program into prepared ops: resolves buffers, weights, pages and constants to pointers, checks that
// every kernel is one that this runtime has, and sizes the scratch that the kernels will want.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/exec/ops.h"
#include "runtime/exec/weight_places.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/support/region.h"

namespace llmrt::exec {

// Where a rank's memory starts, and how it is laid out where that is not the plan's business.
struct RankBases {
  std::byte *weights = nullptr, *arena = nullptr, *kv = nullptr;
  const WeightPlaces *places = nullptr; // of the weights
  uint32_t num_pages = 0;               // of each layer in the pool
};

// A norm weight or bias that the plan keeps in a 16-bit type; kernels want it as f32, so it is widened after loading.
struct VectorCopy {
  const std::byte *from = nullptr;
  cpu::DType dtype = cpu::DType::f32;
  std::vector<float> values;
};

struct PreparedProgram {
  std::vector<PreparedOp> ops;
  std::vector<uint32_t> plan_op; // index into Program.ops of each prepared op
  std::vector<RopeAngles> angles;
  std::vector<std::unique_ptr<VectorCopy>> copies;
  Region angle_memory, shadow_memory;
  Matrix logits; // data null but on the output rank
  size_t team_scratch = 0;

  // Bytes beside weights, arena, pages and team scratch.
  size_t extra_bytes() const;
  // Call once the weights are loaded.
  void widen_vectors();
};

// The plan must have passed plan::verify(). `team_size` sizes the scratch. Throws llmrt::Error.
PreparedProgram prepare(const plan::LoadedPlan &plan, uint32_t rank, const RankBases &bases, int team_size);

// "op 12 (linear, layer 3)", for messages.
std::string op_label(const plan::Program &program, uint32_t op);

} // namespace llmrt::exec
