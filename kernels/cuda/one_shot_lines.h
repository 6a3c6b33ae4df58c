// All-reduce in one shot whose messages go in whole lines (one_shot_lines.cu); one_shot_all_reduce() chooses it.
#pragma once

#include "kernels/cuda/rank_sum.h"

namespace llmrt::cuda {

// Bytes of an inbox for messages of up to `most_bytes` and `most_rows`.
int64_t lines_bytes(int64_t most_bytes, int64_t most_rows);
// Whether it takes rows of so many bytes.
bool lines_take(int64_t row_bytes);
void one_shot_in_lines(const OneShot &p, cudaStream_t stream);

} // namespace llmrt::cuda
