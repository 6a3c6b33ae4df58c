// Greedy tokens of logits whose columns are spread over ranks: every rank finds the best of its own columns, pushes value and
// index into each peer's box, and takes the best of all, so that all ranks have the tokens and no logits travel. And tokens
// that one rank has drawn, pushed to the others in the same way.
//
// A message is sixteen bytes, and each half brings the number of the call. Boxes are used by turns (two): a rank pushes
// call n + 2 only after its call n + 1 has ended, which has seen what each peer pushed when its call n had ended.
#include "kernels/cuda/peers.cuh"
#include "kernels/cuda/sample.cuh"
#include "kernels/cuda/token_round.h"

namespace llmrt::cuda {

namespace {

// Of member `from` about row `r`, in member `to`'s box.
__device__ __forceinline__ char *place(const TokenRound &p, int to, int from, int64_t r) {
  return static_cast<char *>(p.box[to]) + ((p.call & 1) * p.count + from) * p.most_rows * kTokenMessage + r * kTokenMessage;
}

__device__ __forceinline__ void push(const TokenRound &p, int to, int64_t r, Best best) {
  store_volatile(place(p, to, p.rank, r), make_uint4(__float_as_uint(best.value), p.call, best.token, p.call));
}

__device__ __forceinline__ Best receive(const TokenRound &p, int from, int64_t r) {
  uint4 got;
  const bool here = spin(p.given_up, [&] {
    got = load_volatile(place(p, p.rank, from, r));
    return got.y == p.call && got.w == p.call;
  });
  return here ? Best{__uint_as_float(got.x), got.z} : Best{-INFINITY, 0xffffffffu};
}

__device__ __forceinline__ int32_t token_of(Best best) { return best.token == 0xffffffffu ? -1 : static_cast<int32_t>(best.token); }

__global__ void __launch_bounds__(kThreads, 3)
    greedy_ranks_kernel(TokenRound p, const float *logits, int64_t ld, int64_t V, int64_t first, int parts, bool wide) {
  __shared__ Shared shared;
  let_next_start();
  wait_for_previous();
  const int64_t r = blockIdx.x / parts;
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *p.at = p.number;
  Team team{shared, parts, static_cast<int>(blockIdx.x % parts)};
  Best best = best_of_row(team, logits + r * ld, V, wide);
  if (best.token != 0xffffffffu)
    best.token += static_cast<uint32_t>(first);
  if (team.rank == 0 && threadIdx.x < 32) { // a lane for every member
    const int lane = static_cast<int>(threadIdx.x);
    if (lane < p.count && lane != p.rank) {
      push(p, lane, r, best);
      best = better(best, receive(p, lane, r));
    }
#pragma unroll
    for (int offset = 16; offset; offset >>= 1)
      best = better(best, {__shfl_xor_sync(0xffffffffu, best.value, offset), __shfl_xor_sync(0xffffffffu, best.token, offset)});
    if (lane == 0)
      p.tokens[r] = token_of(best);
  }
  team.sync(); // no block may end while another still writes to it
}

__global__ void hand_round_kernel(TokenRound p, int root) {
  let_next_start();
  wait_for_previous();
  const int64_t r = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (r == 0)
    *p.at = p.number;
  if (r >= p.R)
    return;
  if (p.rank != root) {
    p.tokens[r] = token_of(receive(p, root, r));
    return;
  }
  for (int to = 0; to < p.count; ++to)
    if (to != root)
      push(p, to, r, {0, static_cast<uint32_t>(p.tokens[r])});
}

} // namespace

int64_t token_box_bytes(int count, int64_t most_rows) { return 2 * count * most_rows * kTokenMessage; }

void sample_greedy_of_ranks(const TokenRound &p, const float *logits, int64_t ld, int64_t V, int64_t first, cudaStream_t stream) {
  if (p.R <= 0)
    return;
  const bool wide = reinterpret_cast<uintptr_t>(logits) % 16 == 0 && ld % 4 == 0;
  const int parts = greedy_parts(p.R);
  launch_cluster(greedy_ranks_kernel, dim3(static_cast<unsigned>(p.R * parts)), dim3(kThreads), 0, static_cast<unsigned>(parts),
                 stream, p, logits, ld, V, first, parts, wide);
}

void hand_round_tokens(const TokenRound &p, int root, cudaStream_t stream) {
  constexpr int kRows = 128;
  if (p.R > 0)
    launch(hand_round_kernel, dim3(static_cast<unsigned>(ceil_div(p.R, kRows))), dim3(kRows), 0, stream, p, root);
}

} // namespace llmrt::cuda
