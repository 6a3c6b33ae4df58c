// A step's inputs on the device. Each step is uploaded in one copy, packed, while the step before it may still run; a kernel
// then lays it out at addresses that do not depend on the step, so that captured graphs find it again.
#pragma once

#include "kernels/cuda/step.h"
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
  ~StepInputs();

  // Brings the batch to the device in front of what `stream` gets next, padded to `shape` (which must hold it): padded
  // tokens have no slot, padded sequences no context, padded logits rows repeat row 0. `drawn`: the tokens that the step
  // before drew, where the batch has from_rows. With `draws`, the rows' sampling parameters go along.
  // The step two before this one must have finished.
  void upload(const Step &step, const StepShape &shape, const int32_t *drawn, bool draws, cudaStream_t stream);
  // Instead, for a step that follows the one uploaded last, or followed it: that one's inputs, padding included, move a token
  // further. Nothing is copied.
  void follow(const Step &step, const int32_t *drawn, cudaStream_t stream);

  const int32_t *ids() const { return at<int32_t>(ids_); }
  const int32_t *positions() const { return at<int32_t>(positions_); }
  const int32_t *seq_starts() const { return at<int32_t>(seq_starts_); }
  const int32_t *context_lens() const { return at<int32_t>(context_lens_); }
  const int32_t *page_table() const { return at<int32_t>(page_table_); }
  int64_t page_table_stride() const { return stride_; }
  const int64_t *slot_mapping() const { return at<int64_t>(slots_); }
  const int32_t *logits_rows() const { return at<int32_t>(logits_rows_); }
  // Of the step uploaded last, [its rows of logits]; another address with every upload.
  const llmrt::cuda::SampleRow *draws() const { return draws_; }
  size_t bytes() const { return device_.size() + uploaded_[0].size() + uploaded_[1].size(); }

private:
  template <typename T> T *at(size_t offset) const { return reinterpret_cast<T *>(device_.data() + offset); }
  size_t ids_ = 0, positions_ = 0, seq_starts_ = 0, context_lens_ = 0, slots_ = 0, logits_rows_ = 0, page_table_ = 0;
  int64_t stride_ = 0; // of the page table: pages of the longest sequence
  int page_size_ = 0;
  int seqs_ = 0; // of the step uploaded last
  DeviceMemory device_;
  // Used in turn: a step is written and copied while the one before is read.
  PinnedMemory host_[2];
  DeviceMemory uploaded_[2];
  Event copied_[2];
  Stream copies_;
  int turn_ = 0;
  llmrt::cuda::SampleRow *draws_ = nullptr;
};

} // namespace llmrt::exec::cuda
