// What an op of a plan must do in a step, counted from shapes: bytes to and from memory, operations, and bytes to other
// ranks. The one place for this arithmetic; a profile sets it beside measured times.
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/plan/loaded_plan.h"

#include <cstdint>
#include <string>

namespace llmrt::exec {

// Of one op on one rank in one step. Memory is counted once per byte that has to be touched, as if caches held nothing from
// op to op and everything within one.
struct OpCost {
  uint64_t weight_bytes = 0;     // read; of a table, the rows that the step's ids name
  uint64_t activation_bytes = 0; // read and written
  uint64_t kv_bytes = 0;         // read by attention, written by kv_append
  uint64_t flops = 0;            // of products: a multiplication and an addition are two. Elementwise work is not counted
  uint64_t link_bytes = 0;       // that this rank sends to others, at least (all_reduce: as a ring would)

  uint64_t bytes() const { return weight_bytes + activation_bytes + kv_bytes; }
  OpCost &operator+=(const OpCost &other);
};

// `op`: index into the program of `rank`. The plan passed plan::verify(), the batch exec::validate().
OpCost cost_of(const plan::LoadedPlan &plan, uint32_t rank, uint32_t op, const StepBatch &batch);

// What the op is called when layers are added up: its name and what tells it from others of that name, the weight that it
// reads ("linear qkv_proj", "add_rms_norm input_layernorm") or, for collectives, the op in front of it ("all_reduce
// down_proj").
std::string op_title(const plan::Program &program, uint32_t op);

// The last part of a weight's name: "model.layers.3.mlp.down_proj.weight" is a "down_proj".
std::string weight_role(std::string_view name);

} // namespace llmrt::exec
