// Kernels that lay a step's inputs out.
#pragma once

#include "kernels/cuda/sample.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llmrt::cuda {

// What the kernels of a step read of it, as it was uploaded and where they look for it. P is what the step is padded to.
struct BeginStep {
  const int64_t *slots;        // [T]
  const int32_t *ids, *positions; // [T]
  const int32_t *from_rows;    // [T] or null: where >= 0, the token is drawn[from_rows] instead of ids
  const int32_t *drawn;        // tokens of the step before
  const int32_t *seq_starts;   // [S+1]
  const int32_t *context_lens; // [S]
  const int32_t *logits_rows;  // [R]
  const int32_t *page_starts;  // [S+1] ranges of `pages`
  const int32_t *pages;
  int64_t T, R, P_T, P_R;
  int S, P_S;
  int64_t *to_slots;           // [P_T], -1 beyond T
  int32_t *to_ids, *to_positions; // [P_T], 0 beyond T
  int32_t *to_seq_starts;      // [P_S+1], a token each beyond S
  int32_t *to_context_lens;    // [P_S], 0 beyond S
  int32_t *to_logits_rows;     // [P_R], 0 beyond R
  int32_t *to_page_table;      // [S, page_table_stride]
  int64_t page_table_stride;
};
void begin_step(const BeginStep &p, cudaStream_t stream);

// What begin_step() laid out, for a step of the same sequences, a token each, one token further: the one drawn for each.
struct FollowStep {
  const int32_t *drawn;     // [S] tokens of the step before
  const int32_t *new_pages; // [num_new_pages, 2] host memory: sequence and page, ascending by sequence; of each whose new token is the
  int num_new_pages;        // first of a page
  int S, page_size;
  int32_t *ids, *positions, *context_lens; // [S]
  int64_t *slots;           // [S]
  int32_t *page_table;      // [S, page_table_stride]
  int64_t page_table_stride;
  SampleRow *rows;          // [S] or null: their counters go up by one
};
void follow_step(const FollowStep &p, cudaStream_t stream);

} // namespace llmrt::cuda
