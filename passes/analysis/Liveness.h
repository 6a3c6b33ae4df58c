// Places buffers in an arena so that no two that live together share a byte. Pure arithmetic.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace llmc {

struct LiveRange {
  int64_t firstOp = 0, lastOp = 0; // both inclusive
  uint64_t bytes = 0;
  uint64_t offset = 0;             // set by planArena
};

// Sets every offset, a multiple of `alignment`, and returns the arena's size. Larger buffers are placed first, each at
// the lowest offset that is free for its whole life (greedy by size: Pisarchyk and Lee, 2020, arXiv:2001.03288).
// O(n · k) for n buffers of which at most k live together with any one.
uint64_t planArena(llvm::MutableArrayRef<LiveRange> ranges, uint64_t alignment);

} // namespace llmc
