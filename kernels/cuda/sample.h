// Kernels that draw tokens.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llmrt::cuda {

// How a row's token is drawn; device memory, one entry a logits row.
struct SampleRow {
  float temperature;    // 0: greedy
  float top_p;          // 1: off
  float min_p;          // 0: off
  int32_t top_k;        // 0: off
  uint64_t seed;        // of the request
  uint64_t counter;     // index of the token in the request: the same (seed, counter) draws the same number
};

struct Sample {
  int32_t *tokens;      // [R] out
  float *logprobs;      // [R] out or null: log-softmax of the raw logits at the token
  const float *logits;  // [R, V] f32, row stride ld
  int64_t ld;
  const SampleRow *rows; // [R]
  int64_t R, V;
  bool greedy;          // every row has temperature 0: known to the host, `rows` is not read unless logprobs are wanted
  int32_t *host_tokens; // [R] out or null: the same, where the host reads them (pinned)
};
// Temperature, min-p, top-k, top-p (in this order), then one draw; greedy ties go to the lowest id. Tokens that tie with
// the last one kept are kept too. A row without a best token (NaN) gives -1.
void sample(const Sample &p, cudaStream_t stream);

} // namespace llmrt::cuda
