#include "passes/dist/Tiles.h"

using namespace mlir;
using namespace llmc::dist;

RankedTensorType llmc::dist::localType(RankedTensorType type, Attribute sharding, int64_t tpIndex) {
  auto tiles = dyn_cast<TilesAttr>(sharding);
  if (!tiles)
    return type;
  // A vector is tiled along its only dimension, whatever dimension of a matrix it goes with.
  int64_t dim = std::min<int64_t>(tiles.getDim(), type.getRank() - 1);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = tiles.getSizes()[tpIndex];
  return RankedTensorType::get(shape, type.getElementType());
}

uint64_t llmc::dist::localBytes(RankedTensorType type, Attribute sharding, int64_t tpIndex) {
  uint64_t bytes = type.getElementTypeBitWidth() / 8;
  for (int64_t size : localType(type, sharding, tpIndex).getShape())
    bytes *= ShapedType::isDynamic(size) ? 1 : size;
  return bytes;
}
