// A step over two sequences, and limits that it keeps.
#pragma once

#include "runtime/exec/step.h"

namespace llmrt::test {

inline exec::StepLimits small_limits() {
  exec::StepLimits limits;
  limits.max_model_len = 64;
  limits.max_num_seqs = 3;
  limits.max_batched_tokens = 8;
  limits.max_logits_rows = 4;
  limits.page_size = 4;
  limits.num_pages = 20;
  limits.vocab = 100;
  return limits;
}

// A prefill chunk of 3 tokens (positions 4…6) beside a decode at position 9.
inline exec::StepBatch small_step() {
  exec::StepBatch batch;
  batch.id = 7;
  batch.ids = {1, 2, 99, 4};
  batch.positions = {4, 5, 6, 9};
  batch.seq_starts = {0, 3, 4};
  batch.context_lens = {7, 10};
  batch.page_starts = {0, 2, 5};
  batch.pages = {11, 3, 0, 19, 5};
  batch.slot_mapping = {3 * 4 + 0, 3 * 4 + 1, 3 * 4 + 2, 5 * 4 + 1};
  batch.logits_rows = {2, 3};
  return batch;
}

} // namespace llmrt::test
