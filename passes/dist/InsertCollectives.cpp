// dist-insert-collectives: treats each op by itself. What an op gives in pieces is made whole at once, what
// it takes in pieces is cut from the whole; whether that was needed is the next pass's question, so this one
// is easy to trust.
#include "passes/dist/Passes.h"

namespace llmc::dist {
#define GEN_PASS_DEF_DISTINSERTCOLLECTIVES
#include "passes/dist/Passes.h.inc"
} // namespace llmc::dist

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

static void inheritLayer(Operation *from, Operation *to) {
  llm::setLayer(to, llm::getLayer(from));
}

// Makes one result whole for all who use it.
static LogicalResult makeWhole(Operation *op, OpResult result, Attribute sharding) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Operation *whole = nullptr;
  if (isa<PartialAttr>(sharding)) {
    whole = builder.create<AllReduceOp>(op->getLoc(), result, DenseI64ArrayAttr(), IntegerAttr());
  } else if (auto tiles = dyn_cast<TilesAttr>(sharding)) {
    if (!tiles.disjoint()) {
      for (OpOperand &use : result.getUses()) {
        auto in = use.getOwner()->getAttrOfType<ArrayAttr>(kInAttr);
        if (!in || in[use.getOperandNumber()] != sharding)
          return use.getOwner()->emitError() << "needs a value whole that ranks hold in overlapping tiles";
      }
      return success();
    }
    whole = builder.create<AllGatherOp>(op->getLoc(), result.getType(), result, tiles, DenseI64ArrayAttr(),
                                        IntegerAttr());
  } else {
    return success();
  }
  inheritLayer(op, whole);
  result.replaceAllUsesExcept(whole->getResult(0), whole);
  return success();
}

// Cuts the operands that the op wants in tiles, unless they come so (overlapping tiles) or are weights, which
// are loaded in tiles to begin with.
static void cutOperands(Operation *op, ArrayAttr in) {
  OpBuilder builder(op);
  for (auto [operand, sharding] : llvm::zip(op->getOpOperands(), in)) {
    auto tiles = dyn_cast<TilesAttr>(sharding);
    if (!tiles || !tiles.disjoint() || operand.get().getDefiningOp<llm::WeightOp>())
      continue;
    auto slice = builder.create<SliceOp>(op->getLoc(), operand.get().getType(), operand.get(), tiles);
    inheritLayer(op, slice);
    operand.set(slice);
  }
}

namespace {
struct InsertCollectivesPass : llmc::dist::impl::DistInsertCollectivesBase<InsertCollectivesPass> {
  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    SmallVector<Operation *> ops;
    for (Operation &op : getOperation().getBody().front())
      if (op.hasAttr(kInAttr))
        ops.push_back(&op);
    for (Operation *op : ops) {
      cutOperands(op, op->getAttrOfType<ArrayAttr>(kInAttr));
      for (auto [result, sharding] : llvm::zip(op->getResults(), op->getAttrOfType<ArrayAttr>(kOutAttr)))
        if (failed(makeWhole(op, result, sharding)))
          return signalPassFailure();
    }
  }
};
} // namespace
