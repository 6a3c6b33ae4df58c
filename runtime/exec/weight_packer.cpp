// A packed piece is whole panels, and panels do not depend on where in the weight they stand: a piece is packed like a
// small weight of its own.
#include "runtime/exec/weight_packer.h"

#include <algorithm>
#include <string>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/linear.h"
#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {

// Calls use(part, first row of the part, first row of the piece, rows) for what a piece takes of each part.
template <typename Use> void for_parts(const WeightTarget &target, const WeightPiece &piece, Use &&use) {
  const uint64_t end = piece.row + piece.rows, cols = target.weight->cols();
  uint64_t covered = 0;
  size_t i = static_cast<size_t>(std::upper_bound(target.reach.begin(), target.reach.end(), piece.row) -
                                 target.reach.begin());
  for (; i < target.parts.size() && target.parts[i]->dst_row() < end; ++i) {
    const plan::WeightPart &part = *target.parts[i];
    const uint64_t from = std::max(part.dst_row(), piece.row), to = std::min(part.dst_row() + part.rows(), end);
    if (from >= to)
      continue;
    covered += (to - from) * part.cols();
    use(part, part.row() + (from - part.dst_row()), from - piece.row, to - from);
  }
  if (covered != piece.rows * cols)
    throw Error("weight " + plan::quoted(target.weight->name()) + " has parts for " + std::to_string(covered) + " of the " +
                std::to_string(piece.rows * cols) + " elements from row " + std::to_string(piece.row) +
                " on: compile the plan again");
}

} // namespace

void WeightPacker::pack(const WeightTarget &target, const WeightPiece &piece, std::byte *out) {
  if (target.route == Route::Copy)
    return read_as_it_is(target, piece, out);
  if (target.route == Route::Blocks)
    return pack_blocks(target, piece, out);

  const uint64_t cols = target.weight->cols();
  scratch_.resize(std::max<size_t>(scratch_.size(), piece.rows * cols));
  cpu::DType have = cpu::DType::f32;
  if (target.route == Route::Pack) {
    read_as_it_is(target, piece, reinterpret_cast<std::byte *>(scratch_.data()));
    have = target.dtype;
  } else {
    for_parts(target, piece, [&](const plan::WeightPart &part, uint64_t row, uint64_t to, uint64_t rows) {
      reader_.read(plan_.tensor(part), row, rows, part.col(), part.cols(), scratch_.data() + to * cols + part.dst_col(), cols);
    });
  }
  if (target.place.layout == plan::Layout::RowMajor)
    return cpu::from_f32(out, target.dtype, scratch_.data(), static_cast<int64_t>(piece.rows * cols));
  const auto N = static_cast<int64_t>(piece.rows), K = static_cast<int64_t>(cols);
  cpu::pack_weight_padding(out, target.dtype, N, K);
  cpu::pack_weight_rows(out, target.dtype, N, K, 0, N, scratch_.data(), have, K);
}

// Rows of the piece in row-major order, the file's bytes unchanged.
void WeightPacker::read_as_it_is(const WeightTarget &target, const WeightPiece &piece, std::byte *out) {
  const uint64_t element = cpu::dtype_bytes(target.dtype), row_bytes = target.weight->cols() * element;
  for_parts(target, piece, [&](const plan::WeightPart &part, uint64_t row, uint64_t to, uint64_t rows) {
    reader_.copy(plan_.tensor(part), row, rows, part.col(), part.cols(), out + to * row_bytes + part.dst_col() * element,
                 row_bytes);
  });
}

// Blocks go into the weight as they are; each part fills whole rows (cut_weights saw to it).
void WeightPacker::pack_blocks(const WeightTarget &target, const WeightPiece &piece, std::byte *out) {
  const auto N = static_cast<int64_t>(piece.rows), K = static_cast<int64_t>(target.weight->cols());
  cpu::pack_weight_padding(out, target.dtype, N, K);
  for_parts(target, piece, [&](const plan::WeightPart &part, uint64_t row, uint64_t to, uint64_t rows) {
    const plan::Tensor &tensor = plan_.tensor(part);
    reader_.read_blocks(tensor, row, rows, part.col(), part.cols(),
                        [&](uint64_t first, uint64_t count, const std::byte *blocks, size_t row_bytes) {
                          cpu::pack_quantized_rows(out, target.dtype, N, K, static_cast<int64_t>(to + first),
                                                   static_cast<int64_t>(count), blocks, file_type(tensor.dtype()), row_bytes);
                        });
  });
}

} // namespace llmrt::exec
