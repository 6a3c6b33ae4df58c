// A step on its way through the ranks: the caller's batch, proven to fit the plan, with the ragged page lists made
// into the rectangular table that the kernels read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/exec/executor.h"
#include "runtime/plan/plan_generated.h"

namespace llmrt::exec {

// What a batch is measured against.
struct StepLimits {
  uint32_t max_model_len = 0, max_num_seqs = 0, max_batched_tokens = 0, max_logits_rows = 0;
  uint32_t page_size = 0, num_pages = 0;
  uint64_t vocab = 0;

  static StepLimits of(const plan::Plan &plan);
};

// Throws llmrt::Error with a sentence naming the field, the value and the bound: sizes that do not match, ids,
// pages, positions or slots out of range or in disagreement with each other, more of anything than the limits.
void validate(const StepLimits &limits, const StepBatch &batch);
// The same for `from_rows` that are not empty; `before` is the step submitted before, null if there was none.
void validate_from_rows(const StepBatch &batch, const StepBatch *before);

// The step submitted last, as far as one that follows it (StepBatch::follows) is checked against it.
class FollowedStep {
public:
  // It was this batch, which validate() has passed and which is whole.
  void set(const StepBatch &batch);
  // Throws llmrt::Error as validate() does where `batch`, which follows, does not fit: the wrong step, one that cannot be followed, a
  // context or pages that are not as they must be.
  void validate(const StepLimits &limits, const StepBatch &batch) const;
  // It was this one, which has passed.
  void advance(const StepBatch &batch);

private:
  uint64_t id_ = 0;
  std::vector<uint32_t> contexts_; // of its sequences; empty where none can follow
};

// Reused from step to step; the table grows to the largest need and stays.
struct Step {
  std::shared_ptr<const StepBatch> batch;
  std::vector<int32_t> page_table; // [S, page_stride]; empty where the backend makes its own
  int64_t page_stride = 0;
  std::atomic<uint32_t> ranks_left{0};

  int64_t tokens() const { return static_cast<int64_t>(batch->ids.size()); }
  int64_t logits_rows() const { return static_cast<int64_t>(batch->logits_rows.size()); }
  int64_t seqs() const { return static_cast<int64_t>(batch->context_lens.size()); }
  int64_t rows(plan::Rows rows) const { return rows == plan::Rows::Tokens ? tokens() : logits_rows(); }

  void assign(const StepLimits &limits, std::shared_ptr<const StepBatch> batch, bool with_page_table = true);
};

} // namespace llmrt::exec
