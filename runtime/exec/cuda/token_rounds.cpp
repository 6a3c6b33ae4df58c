#include "runtime/exec/cuda/token_rounds.h"

#include <algorithm>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

TokenRounds::TokenRounds(int64_t most_rows, int position, int count, uint32_t number, uint32_t *at)
    : most_rows_(most_rows), position_(position), count_(count), number_(number), at_(at),
      memory_(static_cast<size_t>(k::token_box_bytes(count, most_rows)), "the box of drawn tokens"), given_up_(sizeof(uint32_t)) {
  *given_up() = 0;
}

k::TokenRound TokenRounds::next(int32_t *tokens, size_t rows) {
  calls_ = calls_ == ~0u ? 2 : calls_ + 1; // 0 is what boxes begin with; odd and even calls alternate
  k::TokenRound round{};
  round.tokens = tokens, round.R = static_cast<int64_t>(rows);
  round.rank = position_, round.count = count_;
  std::copy(boxes_.begin(), boxes_.end(), round.box);
  round.most_rows = most_rows_, round.call = calls_;
  round.number = number_, round.at = at_, round.given_up = given_up();
  return round;
}

void TokenRounds::sample_greedy(int32_t *tokens, size_t rows, const OwnLogits &logits, cudaStream_t stream) {
  k::sample_greedy_of_ranks(next(tokens, rows), logits.data, logits.ld, logits.cols, logits.first, stream);
}

void TokenRounds::hand_round(int32_t *tokens, size_t rows, int root, cudaStream_t stream) {
  k::hand_round_tokens(next(tokens, rows), root, stream);
}

} // namespace llmrt::exec::cuda
