// Checks every weight once, chooses its route, and cuts it.
#include "runtime/exec/weight_pieces.h"

#include <algorithm>
#include <string>

#include "kernels/cpu/linear.h"
#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {

// A piece that is read straight to where it goes is worth the call from this size on …
constexpr uint64_t kCopyBytes = 4 << 20;
// … and one that passes through scratch should stay in a core's cache: bytes of f32, or of blocks.
constexpr uint64_t kScratchBytes = 1 << 20;

std::string label(uint32_t rank, const plan::Weight &weight) {
  return "weight " + plan::quoted(weight.name()) + " of rank " + std::to_string(rank);
}

cpu::DType memory_type(const std::string &label, plan::DType dtype) {
  switch (dtype) {
  case plan::DType::F32:
    return cpu::DType::f32;
  case plan::DType::F16:
    return cpu::DType::f16;
  case plan::DType::BF16:
    return cpu::DType::bf16;
  case plan::DType::Q8_0:
    return cpu::DType::q8_0;
  case plan::DType::Q4_1:
    return cpu::DType::q4_1;
  default:
    throw Error(label + " is planned as " + plan::name_of(dtype) +
                ", for which there is no kernel: compile the plan again with --dtype float32, bfloat16 or float16");
  }
}

bool inside(uint64_t begin, uint64_t count, uint64_t end) { return begin <= end && count <= end - begin; }

void check_part(const std::string &name, const plan::Tensor &tensor, const plan::Weight &weight,
                const plan::WeightPart &part) {
  if (!inside(part.row(), part.rows(), tensor.rows()) || !inside(part.col(), part.cols(), tensor.cols()) ||
      !inside(part.dst_row(), part.rows(), weight.rows()) || !inside(part.dst_col(), part.cols(), weight.cols()))
    throw Error(name + " takes a box out of tensor " + plan::quoted(tensor.name()) + " that exceeds the tensor's " +
                std::to_string(tensor.rows()) + " x " + std::to_string(tensor.cols()) + " or its own " +
                std::to_string(weight.rows()) + " x " + std::to_string(weight.cols()) + ": compile the plan again");
}

WeightTarget make_target(const plan::LoadedPlan &plan, uint32_t rank, const plan::Weight &weight, const WeightPlace &place,
                         uint64_t region_bytes) {
  const std::string name = label(rank, weight);
  WeightTarget target;
  target.dtype = memory_type(name, weight.dtype());
  uint64_t bytes = 0;
  if (!plan::weight_bytes(weight.dtype(), place.layout, weight.rows(), weight.cols(), bytes) || bytes > place.bytes ||
      place.offset > region_bytes || place.bytes > region_bytes - place.offset)
    throw Error(name + " needs " + std::to_string(bytes) + " bytes, the plan gives it " + std::to_string(place.bytes) +
                " at " + std::to_string(place.offset) + " of " + std::to_string(region_bytes) + ": compile the plan again");
  target.weight = &weight;
  target.rank = rank;
  target.place = place;
  const bool packed = place.layout == plan::Layout::Packed16, blocks = cpu::is_quantized(target.dtype);
  bool as_it_is = true;
  for (const plan::WeightPart *part : plan::each(weight.parts())) {
    const plan::Tensor &tensor = plan.tensor(*part);
    check_part(name, tensor, weight, *part);
    if (blocks && (!packed || part->cols() != weight.cols() || tensor.file() < 0))
      throw Error(name + " is kept as " + plan::name_of(weight.dtype()) + ", which must be packed16 and come from a file in " +
                  "whole rows: compile the plan again");
    as_it_is &= tensor.file() >= 0 && tensor.dtype() == weight.dtype();
    if (part->rows() != 0 && part->cols() != 0)
      target.parts.push_back(part);
  }
  target.route = blocks ? Route::Blocks : !as_it_is ? Route::Convert : packed ? Route::Pack : Route::Copy;
  std::stable_sort(target.parts.begin(), target.parts.end(),
                   [](const auto *a, const auto *b) { return a->dst_row() < b->dst_row(); });
  uint64_t reach = 0;
  for (const plan::WeightPart *part : target.parts)
    target.reach.push_back(reach = std::max(reach, part->dst_row() + part->rows()));
  return target;
}

// Rows of a piece: whole panels where packed.
uint64_t rows_at_once(const WeightTarget &target) {
  const uint64_t cols = std::max<uint64_t>(target.weight->cols(), 1);
  const uint64_t panel = target.place.layout == plan::Layout::Packed16 ? cpu::kPanelRows : 1;
  const uint64_t rows = target.route == Route::Copy ? kCopyBytes / (cols * cpu::dtype_bytes(target.dtype))
                                                    : kScratchBytes / (cols * sizeof(float));
  return std::max(panel, rows / panel * panel);
}

} // namespace

uint64_t WeightTarget::bytes_of(uint64_t rows) const {
  uint64_t bytes = 0;
  plan::weight_bytes(weight->dtype(), place.layout, rows, weight->cols(), bytes); // fits: the whole weight does
  return bytes;
}

WeightPieces cut_weights(const plan::LoadedPlan &plan, const std::vector<WeightPlaces> &places) {
  WeightPieces result;
  std::vector<std::vector<WeightPiece>> by_rank(plan.num_ranks());
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank)
    for (uint32_t i = 0; i < plan::size_of(plan.program(rank).weights()); ++i) {
      const plan::Weight &weight = *plan.program(rank).weights()->Get(i);
      result.targets.push_back(make_target(plan, rank, weight, places.at(rank).weights.at(i), places.at(rank).bytes));
      const WeightTarget &target = result.targets.back();
      if (weight.cols() == 0)
        continue;
      const uint64_t step = rows_at_once(target);
      for (uint64_t row = 0; row < weight.rows(); row += step) {
        WeightPiece piece;
        piece.target = static_cast<uint32_t>(result.targets.size() - 1);
        piece.row = row;
        piece.rows = std::min(step, weight.rows() - row);
        piece.offset = target.place.offset + target.bytes_of(row);
        piece.bytes = target.bytes_of(piece.rows);
        result.largest = std::max(result.largest, piece.bytes);
        result.total += piece.bytes;
        by_rank[rank].push_back(piece);
      }
    }
  size_t longest = 0;
  for (const std::vector<WeightPiece> &pieces : by_rank)
    longest = std::max(longest, pieces.size());
  for (size_t i = 0; i < longest; ++i)
    for (const std::vector<WeightPiece> &pieces : by_rank)
      if (i < pieces.size())
        result.pieces.push_back(pieces[i]);
  return result;
}

} // namespace llmrt::exec
