// All-reduce in one shot of messages of any length (one_shot_ring.cu); one_shot_all_reduce() chooses it.
#pragma once

#include "kernels/cuda/rank_sum.h"

namespace llmrt::cuda {

// For messages of up to `most_rows` of up to `most_row_bytes` from each of `count` members.
RingShape ring_shape(int count, int64_t most_row_bytes, int64_t most_rows);
void one_shot_in_rings(const OneShot &p, cudaStream_t stream);

} // namespace llmrt::cuda
