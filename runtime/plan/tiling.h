// Whether boxes tile a rectangle: the proof behind "every weight exactly once". A sweep over rows with a counting
// tree over columns, O(n log n) in the number of boxes, whatever the rectangle's size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace llmrt::plan {

// [row, row+rows) × [col, col+cols)
struct Box {
  uint64_t row = 0, rows = 0, col = 0, cols = 0;
};

struct TilingFault {
  enum Kind { Outside, Gap, Overlap } kind;
  uint64_t row = 0, col = 0; // Gap, Overlap: the first element concerned
  size_t a = 0, b = 0;       // Outside: box a. Overlap: boxes a and b
};

// Nothing when every box is non-empty and inside rows × cols and every element lies in exactly one box
// (`overlap_allowed`: in at least one).
std::optional<TilingFault> check_tiling(const std::vector<Box> &boxes, uint64_t rows, uint64_t cols,
                                        bool overlap_allowed);

} // namespace llmrt::plan
