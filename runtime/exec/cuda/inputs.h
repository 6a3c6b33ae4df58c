// A step's inputs on the device: one block, uploaded in one copy, at offsets that do not depend on the step, so that
// captured graphs find them again.
#pragma once

#include "runtime/exec/cuda/handles.h"
#include "runtime/exec/step.h"

namespace llmrt::exec::cuda {

// Sizes of the step as the kernels see it; in a graph they are a bucket's, with padded rows at the end.
struct StepShape {
  int64_t tokens = 0, rows = 0; // T, R
  int seqs = 0;                 // S
  int max_query = 0, max_context = 0;
};

class StepInputs {
public:
  explicit StepInputs(const StepLimits &limits);

  // Copies the batch to the device, padded to `shape` (which must hold it): padded tokens have no slot, padded sequences
  // no context, padded logits rows repeat row 0.
  void upload(const Step &step, const StepShape &shape, cudaStream_t stream);

  const int32_t *ids() const { return at<int32_t>(ids_); }
  const int32_t *positions() const { return at<int32_t>(positions_); }
  const int32_t *seq_starts() const { return at<int32_t>(seq_starts_); }
  const int32_t *context_lens() const { return at<int32_t>(context_lens_); }
  const int32_t *page_table() const { return at<int32_t>(page_table_); }
  int64_t page_table_stride() const { return stride_; }
  const int64_t *slot_mapping() const { return at<int64_t>(slots_); }
  const int32_t *logits_rows() const { return at<int32_t>(logits_rows_); }
  size_t bytes() const { return device_.size(); }

private:
  template <typename T> const T *at(size_t offset) const { return reinterpret_cast<const T *>(device_.data() + offset); }
  size_t ids_ = 0, positions_ = 0, seq_starts_ = 0, context_lens_ = 0, slots_ = 0, logits_rows_ = 0, page_table_ = 0;
  int64_t stride_ = 0; // of the page table: pages of the longest sequence
  DeviceMemory device_;
  PinnedMemory host_[2]; // used in turn: a copy may be under way while the next step is written
  Event copied_[2];
  int turn_ = 0;
};

} // namespace llmrt::exec::cuda
