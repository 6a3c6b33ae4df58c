// The first kernel of a step: lays its inputs out for the others, and fills in the tokens that the step before drew.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/kernels.h"

#include <algorithm>

namespace llmrt::cuda {

namespace {

constexpr int kThreads = 256;

// Lets no other kernel start early: several read a step's inputs before they wait for the kernel in front of them.
__global__ void begin_kernel(BeginStep p) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < p.P_T) {
    const bool here = i < p.T;
    int32_t id = here ? p.ids[i] : 0;
    if (here && p.from_rows && p.from_rows[i] >= 0)
      id = p.drawn[p.from_rows[i]];
    p.to_ids[i] = id;
    p.to_positions[i] = here ? p.positions[i] : 0;
    p.to_slots[i] = here ? p.slots[i] : -1;
  }
  if (i < p.P_R)
    p.to_logits_rows[i] = i < p.R ? p.logits_rows[i] : 0;
  if (i < p.P_S)
    p.to_context_lens[i] = i < p.S ? p.context_lens[i] : 0;
  if (i <= p.P_S)
    p.to_seq_starts[i] = i <= p.S ? p.seq_starts[i] : p.seq_starts[p.S] + static_cast<int32_t>(i - p.S);
  for (int s = static_cast<int>(blockIdx.x); s < p.S; s += static_cast<int>(gridDim.x)) {
    const int begin = p.page_starts[s], count = p.page_starts[s + 1] - begin;
    for (int page = static_cast<int>(threadIdx.x); page < count; page += kThreads)
      p.to_page_table[s * p.page_table_stride + page] = p.pages[begin + page];
  }
  // Kernels two further on may start once these blocks have ended, and wait for the one in between, not for this one.
  __threadfence();
}

} // namespace

void begin_step(const BeginStep &p, cudaStream_t stream) {
  const int64_t elements = std::max({p.P_T, p.P_R, int64_t{p.P_S} + 1});
  const int64_t blocks = std::max<int64_t>(ceil_div(elements, kThreads), p.S);
  // Not allowed to start early: what it reads was uploaded by another stream.
  begin_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(p);
  require(cudaPeekAtLastError(), "launch");
}

} // namespace llmrt::cuda
