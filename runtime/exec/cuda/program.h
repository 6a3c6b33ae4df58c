// A rank's program on the device: ops with resolved pointers, run in order on a stream.
#pragma once

#include "runtime/exec/cuda/inputs.h"
#include "runtime/exec/cuda/products.h"
#include "runtime/exec/cuda/world.h"
#include "runtime/exec/step_observer.h"
#include "runtime/plan/loaded_plan.h"

#include <functional>
#include <vector>

namespace llmrt::exec::cuda {

// What an op runs with.
struct OpContext {
  const StepShape &shape;
  const StepInputs &inputs;
  Products &products;
  RankLink *link; // to the other ranks; null with one rank
  cudaStream_t stream;
  uint64_t step = 0;
  StepObserver *observer = nullptr; // of the step, if any
};

// Where a rank's memory starts, and what its ops need beside the plan's buffers.
struct DeviceBases {
  std::byte *weights = nullptr, *arena = nullptr, *kv = nullptr;
};

class Program {
public:
  // The plan must have passed plan::verify(); weights are loaded by now (biases are converted here). Throws llmrt::Error
  // naming the op for a kernel or type that this backend does not have.
  Program(const plan::LoadedPlan &plan, uint32_t rank, const DeviceBases &bases);

  // All ops but a gather of logits at the end, which is for steps whose logits somebody wants whole.
  void run(const OpContext &context) const;
  void gather_logits(const OpContext &context) const; // no-op where they are whole

  // f32 [R, vocab] on the output rank, null elsewhere.
  const float *logits() const { return logits_; }
  // Before they are gathered from all ranks; no data where they are not.
  const OwnLogits &own_logits() const { return own_logits_; }
  size_t bytes() const; // device memory of its own
  // Whether ops sum or gather over a group, and whether ops pass rows between stages.
  bool has_collectives() const { return has_collectives_; }
  bool has_transfers() const { return has_transfers_; }

private:
  friend class ProgramBuilder;
  void run(size_t op, const OpContext &context) const;
  uint32_t rank_;
  std::vector<std::function<void(const OpContext &)>> ops_; // one an op of the plan
  std::vector<DeviceMemory> owned_;
  const float *logits_ = nullptr;
  OwnLogits own_logits_;
  bool has_collectives_ = false, has_transfers_ = false;
};

} // namespace llmrt::exec::cuda
