// The sums of a group whose members write each other's memory (kernels/cuda/one_shot.cu, two_shot.cu) from the side of one rank:
// its inboxes, its peers' inboxes, and the words through which host and kernels tell each other how far they are.
#pragma once

#include "kernels/cuda/rank_sum.h"
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

// Up to which size the plan wants a sum pushed.
struct PushLimits {
  uint64_t one_shot_bytes = 0, two_shot_bytes = 0;
  uint64_t most() const { return one_shot_bytes > two_shot_bytes ? one_shot_bytes : two_shot_bytes; }
};

class PushedSums {
public:
  // The largest messages of the rank's sums in the group, their rows, and the longest row; zeros where the plan has none.
  struct Size {
    int64_t one_bytes = 0, one_rows = 0, two_bytes = 0, two_rows = 0, row_bytes = 0;
  };
  static Size size_of(const plan::LoadedPlan &plan, uint32_t rank, uint32_t group);

  // On the current device. `position`: of this rank among `count` members. `whole_lines`: whether the links between all of them
  // keep lines whole (rank_sum.h). `at`: pinned word to which the device writes the seq of the sum that it begins.
  PushedSums(const Size &size, int position, int count, bool whole_lines, uint32_t *at);

  std::byte *inbox() const { return memory_.data(); }
  // Inboxes of all members, in group order; before the first sum.
  void connect(const std::vector<std::byte *> &inboxes) { inboxes_ = inboxes; }

  bool takes(const DevicePart &data, const PushLimits &limits) const;
  // Of data that it takes. In place; with norm.out set, the norm in place of the sum.
  void all_reduce(const DevicePart &data, const PushLimits &limits, uint32_t seq, const SumNorm &norm, cudaStream_t stream);

  // Sums under way and to come stop waiting for the other members; what they leave is worthless. From any thread.
  void give_up() { *given_up() = 1; }

  size_t bytes() const { return memory_.size(); }

private:
  volatile uint32_t *given_up() const { return reinterpret_cast<volatile uint32_t *>(given_up_.data()); }

  Size size_;
  llmrt::cuda::InboxShape one_;
  llmrt::cuda::TwoShotShape two_;
  size_t two_at_, state_at_; // in the memory: the inbox of two shots, and the states of both
  int position_, count_;
  bool whole_lines_;
  DeviceMemory memory_;
  PinnedMemory given_up_;
  uint32_t *at_;
  std::vector<std::byte *> inboxes_;
};

} // namespace llmrt::exec::cuda
