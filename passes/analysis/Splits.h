// How dimensions are cut over the ranks of a stage, and which (tp, pp) pairs a model allows. Pure arithmetic.
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <string>

namespace llmc {

// [begin, begin + size) of a dimension.
struct Extent {
  int64_t begin = 0, size = 0;
  int64_t end() const { return begin + size; }
  bool operator==(const Extent &) const = default;
};

// Cuts `total` elements into `parts` neighbouring extents whose borders are multiples of `unit`, the earlier ones taking
// what does not divide. Where there are fewer units than parts, the unit is halved until there are enough.
// Precondition: 1 <= parts <= total.
llvm::SmallVector<Extent> splitDimension(int64_t total, int64_t parts, int64_t unit);

// Heads of one rank: neighbouring query heads and the KV heads that these read.
struct HeadExtents {
  Extent q, kv;
};

// Cuts attention by whole KV groups where there are at least as many KV heads as parts (8 KV heads over 3 ranks: 3/3/2);
// otherwise by query heads, each rank holding every KV head that its query heads read, so that some are held twice.
// Precondition: kvHeads divides qHeads, 1 <= parts <= qHeads.
llvm::SmallVector<HeadExtents> splitHeads(int64_t qHeads, int64_t kvHeads, int64_t parts);

// The dimensions that bound a split.
struct SplitLimits {
  int64_t qHeads = 0, ffn = 0, vocab = 0, layers = 0, devices = 0;
};

// Why (tp, pp) cannot be: the dimension, both numbers and the legal pairs. Empty where it can.
std::string explainIllegalSplit(const SplitLimits &limits, int64_t tp, int64_t pp);

// "tp 1 with pp 1-12, tp 2 with pp 1-6, …"
std::string legalPairs(const SplitLimits &limits);

} // namespace llmc
