// Where values come from: for each column of each buffer, the op that wrote it last; for each row or column of a
// weight, the tensor element it is. The proofs about heads, FFN columns and vocabulary follow values with these.
#pragma once

#include "runtime/plan/access.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace llmrt::plan {

// [begin, begin+count) of something is [source, source+count) of `tensor`, along one axis.
struct Segment {
  uint64_t begin = 0, count = 0;
  uint32_t tensor = 0;
  uint64_t source = 0;
};

// Sorted by begin, neighbours that continue each other joined.
std::vector<Segment> merge_segments(std::vector<Segment> segments);

// A weight along its rows (column-parallel: whole input rows of tensors) and along its columns (row-parallel).
struct WeightMap {
  std::vector<Segment> rows; // empty: its parts are not stacks of rows
  std::vector<Segment> cols; // empty: its parts are not side by side, or come from several tensors
  bool partial = false;      // a product with it is a partial sum: it holds some of its tensor's columns
};
WeightMap map_weight(const Plan &plan, const Weight &weight);

// The last writer of each column of a rank's buffers, as the walk over its ops stands.
class Producers {
public:
  struct Piece {
    uint64_t begin, end; // columns
    uint32_t op;
    bool partial;        // a partial sum not yet reduced
  };

  explicit Producers(uint32_t buffers) : buffers_(buffers) {}
  void write(const View &view, uint32_t op, bool partial);

  // The pieces that make up a view, in column order. None when a column was never written or when there are more
  // than `most` (no valid program builds a value from that many).
  std::optional<std::vector<Piece>> read(const View &view, size_t most) const;

private:
  struct Entry {
    uint64_t end;
    uint32_t op;
    bool partial;
  };
  std::vector<std::map<uint64_t, Entry>> buffers_;
};

} // namespace llmrt::plan
