// Tokens that all ranks of one machine are to have.
#pragma once

#include "kernels/cuda/peers.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llmrt::cuda {

// Tokens of R rows that all members of a group are to have; every member makes the same calls in the same order, numbered from
// 1 on, on a device of its own. Boxes begin as zeros.
struct TokenRound {
  int32_t *tokens;       // [R]
  int64_t R;
  int rank, count;       // position in the group, members (32 at most)
  void *box[kMaxPeers];  // of each member, written by all: token_box_bytes()
  int64_t most_rows;     // that the boxes are for
  uint32_t call;         // its number
  uint32_t number, *at;  // told to the host while the round is under way, as in OneShot
  const volatile uint32_t *given_up;
};
inline constexpr int64_t kTokenMessage = 16; // bytes
int64_t token_box_bytes(int count, int64_t most_rows);
// Each member has the logits [R, V] f32, row stride ld, of the tokens from `first` on; tokens become the best of all members'
// on all of them, the lowest id where they tie, -1 for a row without one (NaN).
void sample_greedy_of_ranks(const TokenRound &p, const float *logits, int64_t ld, int64_t V, int64_t first, cudaStream_t stream);
// Tokens of member `root` become those of all. Between two of these calls the members must have waited for each other.
void hand_round_tokens(const TokenRound &p, int root, cudaStream_t stream);

} // namespace llmrt::cuda
