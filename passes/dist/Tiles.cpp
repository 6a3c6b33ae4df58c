#include "passes/dist/Tiles.h"

#include "dialects/llm/LLMDialect.h"

using namespace mlir;
using namespace llmc;
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

LogicalResult llmc::dist::checkShardings(func::FuncOp function, int64_t tp) {
  for (Operation &op : function.getBody().front()) {
    SmallVector<Attribute> shardings;
    for (StringRef name : {kInAttr, kOutAttr})
      if (auto array = op.getAttrOfType<ArrayAttr>(name))
        llvm::append_range(shardings, array);
      else if (!isa_and_nonnull<DistDialect>(op.getDialect()) && !isa<llm::WeightOp>(op))
        return op.emitError() << "has no '" << name << "': run dist-assign-shardings first";
    if (auto tiles = op.getAttrOfType<TilesAttr>("tiles"))
      shardings.push_back(tiles);
    for (Attribute sharding : shardings)
      if (auto tiles = dyn_cast<TilesAttr>(sharding);
          tiles && static_cast<int64_t>(tiles.getSizes().size()) != tp)
        return op.emitError() << "has tiles for " << tiles.getSizes().size() << " ranks, but a stage has "
                              << tp;
  }
  return success();
}
