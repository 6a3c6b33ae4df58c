// Drawn tokens between ranks that can write each other's memory (kernels/cuda/sample_ranks.cu), from the side of one rank: its
// box, its peers' boxes, and the number of the next call.
#pragma once

#include "kernels/cuda/token_round.h"
#include "runtime/exec/cuda/handles.h"

#include <cstdint>
#include <vector>

namespace llmrt::exec::cuda {

// The columns of the logits that a rank computes.
struct OwnLogits {
  const float *data = nullptr; // f32 [R, cols], row stride ld
  int64_t ld = 0, cols = 0;
  int64_t first = 0;           // index in the vocabulary of column 0
};

class TokenRounds {
public:
  // On the current device. `at`: pinned word to which the device writes `number` while a round is under way.
  TokenRounds(int64_t most_rows, int position, int count, uint32_t number, uint32_t *at);

  std::byte *box() const { return memory_.data(); }
  // Boxes of all members, in group order; before the first round.
  void connect(const std::vector<std::byte *> &boxes) { boxes_ = boxes; }

  // See the kernels; `tokens` [rows] on this device.
  void sample_greedy(int32_t *tokens, size_t rows, const OwnLogits &logits, cudaStream_t stream);
  void hand_round(int32_t *tokens, size_t rows, int root, cudaStream_t stream);

  // Rounds under way and to come stop waiting for the other members; what they leave is worthless. From any thread.
  void give_up() { *given_up() = 1; }

  size_t bytes() const { return memory_.size(); }

private:
  llmrt::cuda::TokenRound next(int32_t *tokens, size_t rows);
  volatile uint32_t *given_up() const { return reinterpret_cast<volatile uint32_t *>(given_up_.data()); }

  int64_t most_rows_;
  int position_, count_;
  uint32_t number_, *at_;
  uint32_t calls_ = 0;
  DeviceMemory memory_;
  PinnedMemory given_up_;
  std::vector<std::byte *> boxes_;
};

} // namespace llmrt::exec::cuda
