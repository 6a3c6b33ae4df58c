// Verifiers and folders of the dist ops.
#include "dialects/dist/DistDialect.h"

#include <numeric>

using namespace mlir;
using namespace llmc::dist;

#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

// The dimension of the tiles must exist. Whole extents must match the tiles'; a local type may be any one
// tile.
static LogicalResult checkTiles(Operation *op, TilesAttr tiles, RankedTensorType whole,
                                RankedTensorType part) {
  int64_t dim = tiles.getDim();
  if (dim >= whole.getRank() || whole.getRank() != part.getRank())
    return op->emitOpError() << "tiles dimension " << dim << ", which " << whole << " and " << part
                             << " do not both have";
  if (whole.getDimSize(dim) != tiles.extent())
    return op->emitOpError() << "tiles cover " << tiles.extent() << " elements of dimension " << dim << " of "
                             << whole;
  for (int64_t d = 0; d < whole.getRank(); ++d)
    if (whole.getElementType() != part.getElementType() ||
        (d != dim && whole.getDimSize(d) != part.getDimSize(d)))
      return op->emitOpError() << whole << " and " << part << " may differ in dimension " << dim << " alone";
  int64_t size = part.getDimSize(dim);
  if (size != tiles.extent() && !llvm::is_contained(tiles.getSizes(), size))
    return op->emitOpError() << part << " is neither whole nor one of the tiles";
  return success();
}

// A gather puts tiles one behind the other, which is the whole only if none overlap.
static LogicalResult checkGather(Operation *op, TilesAttr tiles, std::optional<ArrayRef<int64_t>> group) {
  if (!tiles.disjoint())
    return op->emitOpError() << "cannot gather tiles that overlap";
  if (group && group->size() != tiles.getSizes().size())
    return op->emitOpError() << "has " << group->size() << " ranks for " << tiles.getSizes().size()
                             << " tiles";
  return success();
}

LogicalResult AllGatherOp::verify() {
  if (failed(checkGather(*this, getTiles(), getGroup())))
    return failure();
  return checkTiles(*this, getTiles(), cast<RankedTensorType>(getResult().getType()),
                    cast<RankedTensorType>(getInput().getType()));
}

LogicalResult GatherOp::verify() {
  if (failed(checkGather(*this, getTiles(), getGroup())))
    return failure();
  if (getRoot() >= getTiles().getSizes().size())
    return emitOpError() << "root " << static_cast<int64_t>(getRoot()) << " is not among "
                         << getTiles().getSizes().size() << " members";
  if (!getResult())
    return success();
  return checkTiles(*this, getTiles(), cast<RankedTensorType>(getResult().getType()),
                    cast<RankedTensorType>(getInput().getType()));
}

LogicalResult SliceOp::verify() {
  return checkTiles(*this, getTiles(), cast<RankedTensorType>(getInput().getType()),
                    cast<RankedTensorType>(getResult().getType()));
}

// slice(all_gather(x)) over the same tiles is x: what a row-parallel product needs is what its rank has
// already.
OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (auto gather = getInput().getDefiningOp<AllGatherOp>())
    if (gather.getTiles() == getTiles() && gather.getInput().getType() == getType())
      return gather.getInput();
  return {};
}

LogicalResult TransferOp::verify() {
  if (getFrom() == getTo())
    return emitOpError() << "goes from stage " << getFrom() << " to itself";
  return success();
}
