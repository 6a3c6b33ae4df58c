// The plan's places, and those that the CPU's kernels need in their stead.
#include "runtime/exec/weight_places.h"

#include "runtime/plan/access.h"

namespace llmrt::exec {

namespace {
constexpr uint64_t kAlign = 256; // as the compiler aligns weights
} // namespace

WeightPlaces planned_places(const plan::Program &program) {
  WeightPlaces places;
  for (const plan::Weight *weight : plan::each(program.weights()))
    places.weights.push_back({weight->layout(), weight->offset(), weight->bytes()});
  places.bytes = program.weight_bytes();
  return places;
}

WeightPlaces host_places(const plan::Program &program) {
  WeightPlaces places = planned_places(program);
  bool changed = false;
  for (const plan::Op *op : plan::each(program.ops()))
    if (const plan::Linear *linear = op->op_as_Linear()) {
      const plan::Weight &weight = *program.weights()->Get(linear->weight());
      WeightPlace &place = places.weights[linear->weight()];
      uint64_t bytes = 0;
      if (place.layout == plan::Layout::Packed16 ||
          !plan::weight_bytes(weight.dtype(), plan::Layout::Packed16, weight.rows(), weight.cols(), bytes))
        continue; // a type that cannot be packed is refused with its name when the op is prepared
      place.layout = plan::Layout::Packed16;
      place.bytes = bytes;
      changed = true;
    }
  if (!changed)
    return places;
  places.bytes = 0;
  for (WeightPlace &place : places.weights) {
    place.offset = places.bytes;
    places.bytes += (place.bytes + kAlign - 1) / kAlign * kAlign;
  }
  return places;
}

} // namespace llmrt::exec
