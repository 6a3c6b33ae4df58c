// The one-shot sums of a group (kernels/cuda/one_shot.cu) from the side of one rank: its inbox, its peers' inboxes, and the
// words through which host and kernels tell each other how far they are.
#pragma once

#include "kernels/cuda/kernels.h"
#include "runtime/exec/cuda/device_part.h"
#include "runtime/exec/cuda/handles.h"
#include "runtime/plan/loaded_plan.h"

#include <cstdint>
#include <vector>

namespace llmrt::exec::cuda {

// A norm that follows a sum: residual += sum, out = RMSNorm(residual) · (weight + offset).
struct SumNorm {
  void *out = nullptr, *residual = nullptr;
  const float *weight = nullptr;
  int64_t ld_out = 0, ld_residual = 0;
  float eps = 0, weight_offset = 0;
};

class OneShotGroup {
public:
  // The largest message of the rank's sums in the group, and its rows; zeros where the plan has none for one shot.
  struct Size {
    int64_t bytes = 0, rows = 0;
  };
  static Size size_of(const plan::LoadedPlan &plan, uint32_t rank, uint32_t group);

  // On the current device. `position`: of this rank among `count` members. `at`: pinned word to which the
  // device writes the seq of the sum that it begins.
  OneShotGroup(Size size, int position, int count, uint32_t *at);

  std::byte *inbox() const { return memory_.data(); }
  // Inboxes of all members, in group order; before the first sum.
  void connect(const std::vector<std::byte *> &inboxes);

  // In place; with norm.out set, the norm in place of the sum.
  void all_reduce(const DevicePart &data, uint32_t seq, const SumNorm &norm, cudaStream_t stream);

  // Sums under way and to come stop waiting for the other members; what they leave is worthless. From any thread.
  void give_up() { *given_up() = 1; }

  size_t bytes() const { return memory_.size(); }

private:
  volatile uint32_t *given_up() const { return reinterpret_cast<volatile uint32_t *>(given_up_.data()); }

  llmrt::cuda::InboxShape box_;
  int position_, count_;
  DeviceMemory memory_; // the inbox, then the state
  PinnedMemory given_up_;
  uint32_t *at_;
  std::vector<std::byte *> inboxes_;
};

} // namespace llmrt::exec::cuda
