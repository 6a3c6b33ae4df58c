// What stands next to a matrix product in a program and could be done in one launch with it: a backend that fuses ops reads
// here which may be.
#pragma once

#include "runtime/plan/loaded_plan.h"

#include <cstdint>
#include <optional>

namespace llmrt::exec {

// Around the `linear` at index op. Nobody but these ops reads what lies between them, so none of it need be written.
struct Neighbours {
  // The op before: rms_norm, or add_rms_norm, whose result is the product's input.
  std::optional<uint32_t> norm;
  const plan::View *norm_rows = nullptr; // what it normalises: its input, or the residual once the sum is there

  // What follows, one of these at most.
  std::optional<uint32_t> add;  // add or add_rms_norm: adds the product to a residual
  std::optional<uint32_t> gate; // gated_act of the product's two halves
  std::optional<uint32_t> rope; // rope, and kv_append right behind it, of the product's columns q, k, v
  const plan::View *result = nullptr; // what the last of them writes; the product's own result where none follows

  // Whether `result` has no memory in common with the product's input, and with norm_rows. One launch reads the one while it
  // writes the other, and the plan may have given the memory of what is not needed any more to the result.
  bool input_apart = false, norm_apart = false;
};

// Whether anything after the op at index `op` reads what is in the view by then: other ops, or the step's caller.
bool read_after(const plan::LoadedPlan &plan, uint32_t rank, const plan::View &view, uint32_t op);

// `op` must be a linear.
Neighbours neighbours_of(const plan::LoadedPlan &plan, uint32_t rank, uint32_t op);

} // namespace llmrt::exec
