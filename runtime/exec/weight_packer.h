// Produces one piece of a weight in memory: reads its parts from the files, in the form that the weight has in memory.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/exec/tensor_reader.h"
#include "runtime/exec/weight_pieces.h"

namespace llmrt::exec {

// One per thread. Scratch is bounded by the pieces' sizes.
class WeightPacker {
public:
  WeightPacker(const plan::LoadedPlan &plan, const WeightFiles &files) : plan_(plan), reader_(files) {}

  // Writes all piece.bytes bytes at `out`. Throws llmrt::Error where the parts do not cover the piece, or a read fails.
  void pack(const WeightTarget &target, const WeightPiece &piece, std::byte *out);

private:
  void read_as_it_is(const WeightTarget &target, const WeightPiece &piece, std::byte *out);
  void pack_blocks(const WeightTarget &target, const WeightPiece &piece, std::byte *out);

  const plan::LoadedPlan &plan_;
  TensorReader reader_;
  std::vector<float> scratch_;
};

} // namespace llmrt::exec
