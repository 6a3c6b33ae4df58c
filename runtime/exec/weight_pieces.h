// Weights cut into pieces: runs of rows that a thread loads at a time, each a range of bytes of its rank's region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/dtype.h"
#include "runtime/exec/weight_places.h"
#include "runtime/plan/loaded_plan.h"

namespace llmrt::exec {

// How the file's bytes become the weight's.
enum class Route : uint8_t {
  Copy,    // as they are, row by row
  Pack,    // as they are, into panels
  Blocks,  // quantised blocks as they are, into panels
  Convert, // by way of f32
};

// A weight with its parts in the order of their destination rows, so that those of a piece are found at once.
struct WeightTarget {
  const plan::Weight *weight = nullptr;
  uint32_t rank = 0;
  WeightPlace place;
  cpu::DType dtype = cpu::DType::f32; // in memory
  Route route = Route::Convert;
  std::vector<const plan::WeightPart *> parts; // by dst_row
  std::vector<uint64_t> reach;                 // reach[i]: the largest end row of parts[0 … i]

  // Bytes of `rows` rows; of a packed weight, of their panels.
  uint64_t bytes_of(uint64_t rows) const;
};

struct WeightPiece {
  uint32_t target = 0;
  uint64_t row = 0, rows = 0;     // a packed weight's pieces start at whole panels
  uint64_t offset = 0, bytes = 0; // in the rank's region
};

struct WeightPieces {
  std::vector<WeightTarget> targets;
  std::vector<WeightPiece> pieces; // in the order to load them: the ranks in turn, so that all devices are fed at once
  uint64_t largest = 0, total = 0; // bytes
};

// places[r]: where rank r's weights go. Throws llmrt::Error naming rank and weight for a box outside its tensor or weight,
// a weight outside its region, a type or layout that cannot be loaded.
WeightPieces cut_weights(const plan::LoadedPlan &plan, const std::vector<WeightPlaces> &places);

} // namespace llmrt::exec
