// Embedding lookup from a row-major table or straight from a packed linear weight (tied embeddings),
// restricted to the vocabulary rows that this rank owns.
#pragma once

#include "kernels/cpu/dtype.h"
#include "kernels/cpu/team.h"

namespace llmrt::cpu {

struct Embedding {
  float *out; // [T, H], row stride out_stride
  int64_t out_stride;
  const int32_t
      *ids; // [T]; an id outside [begin, end) gives a row of zeros (vocab-parallel: the ranks' rows add up)
  int64_t T, H;
  const void *table; // rows [begin, end) of the vocabulary: row-major [end-begin, H], or packed (linear.h)
  DType dtype;
  bool packed;
  int64_t begin, end;
  float scale = 1; // multiplies every row (Gemma)
};

void embedding(Team &team, const Embedding &p);

} // namespace llmrt::cpu
