// The first kernel of a step: lays its inputs out for the others, and fills in the tokens that the step before drew. Or moves those
// of the step before one token further; what is new about them fits into the launch.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/step.h"

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

constexpr int kMostNewPages = 256; // of a launch, whose arguments were 4 KiB at most before CUDA 12

struct Further {
  FollowStep step;
  int begin, end; // sequences
  int num_new_pages;
  int2 new_pages[kMostNewPages]; // of these; x: sequence, y: page
};

// Lets no other kernel start early either.
__global__ void follow_kernel(const __grid_constant__ Further p) {
  const FollowStep &s = p.step;
  const int i = p.begin + static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i < p.end) {
    const int position = s.positions[i] + 1;
    s.ids[i] = s.drawn[i];
    s.positions[i] = position;
    s.context_lens[i] = position + 1;
    if (position % s.page_size != 0) {
      ++s.slots[i];
    } else {
      int at = 0;
      for (int end = p.num_new_pages; end - at > 1;) {
        const int middle = (at + end) / 2;
        (p.new_pages[middle].x <= i ? at : end) = middle;
      }
      const int page = p.new_pages[at].y;
      s.slots[i] = int64_t(page) * s.page_size;
      s.page_table[i * s.page_table_stride + position / s.page_size] = page;
    }
    if (s.rows)
      ++s.rows[i].counter;
  }
  __threadfence(); // as above
}

} // namespace

// One launch, unless more sequences begin a page than it can tell.
void follow_step(const FollowStep &p, cudaStream_t stream) {
  Further further;
  further.step = p;
  int told = 0;
  for (further.begin = 0; further.begin < p.S; further.begin = further.end) {
    further.num_new_pages = std::min(p.num_new_pages - told, kMostNewPages);
    for (int i = 0; i < further.num_new_pages; ++i, ++told)
      further.new_pages[i] = {p.new_pages[2 * told], p.new_pages[2 * told + 1]};
    further.end = told < p.num_new_pages ? p.new_pages[2 * told] : p.S;
    follow_kernel<<<static_cast<unsigned>(ceil_div(further.end - further.begin, kThreads)), kThreads, 0, stream>>>(further);
    require(cudaPeekAtLastError(), "launch");
  }
}

void begin_step(const BeginStep &p, cudaStream_t stream) {
  const int64_t elements = std::max({p.P_T, p.P_R, int64_t{p.P_S} + 1});
  const int64_t blocks = std::max<int64_t>(ceil_div(elements, kThreads), p.S);
  // Not allowed to start early: what it reads was uploaded by another stream.
  begin_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(p);
  require(cudaPeekAtLastError(), "launch");
}

} // namespace llmrt::cuda
