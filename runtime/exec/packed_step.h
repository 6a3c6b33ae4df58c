// A step's lists as one block of bytes, one behind the other, for devices that get them in one copy.
#pragma once

#include "runtime/exec/step.h"

#include <cstddef>
#include <cstdint>

namespace llmrt::exec {

// How a row's token is drawn, as kernels read it.
struct PackedDraw {
  float temperature, top_p, min_p;
  int32_t top_k;
  uint64_t seed, counter;
};

// Where each list of a batch that is whole begins, in bytes, a multiple of 16.
struct PackedStep {
  size_t slots = 0, draws = 0, ids = 0, positions = 0, from_rows = 0, seq_starts = 0, context_lens = 0, logits_rows = 0;
  size_t page_starts = 0, pages = 0, bytes = 0; // all
};

// Enough for whatever pack() writes.
size_t packed_bytes(const StepLimits &limits);

// With `draws`, the rows' sampling parameters go along, [R] PackedDraw; rows that want no token are drawn too, as is cheapest.
PackedStep pack(const StepBatch &batch, bool draws, std::byte *to);

} // namespace llmrt::exec
