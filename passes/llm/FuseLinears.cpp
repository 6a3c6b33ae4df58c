#include "passes/llm/FuseLinears.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace llmc::llm;

LinearOp llmc::llm::findSingleProjection(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto rope = dyn_cast<RopeOp>(op))
      value = value == rope.getQOut() ? rope.getQ() : rope.getK();
    else if (auto norm = dyn_cast<HeadNormOp>(op))
      value = norm.getInput();
    else if (auto linear = dyn_cast<LinearOp>(op))
      return linear.getWeights().size() == 1 ? linear : LinearOp();
    else
      return {};
  }
  return {};
}

OpOrder::OpOrder(func::FuncOp function) {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { place[op] = place.size(); });
}

LogicalResult llmc::llm::stackLinears(SmallVector<LinearOp, 3> linears, OpOrder &order) {
  llvm::SmallPtrSet<Operation *, 4> distinct;
  for (LinearOp linear : linears) {
    if (!linear || !distinct.insert(linear).second || linear.getInput() != linears[0].getInput() ||
        linear->getBlock() != linears[0]->getBlock() || linear.getBiases().empty() != linears[0].getBiases().empty())
      return failure();
  }
  if (linears.size() < 2)
    return failure();

  // Placed where the first stands, the stacked op precedes every use; its weights must precede it as well, and they
  // depend on nothing.
  LinearOp first = *llvm::min_element(linears, [&](LinearOp a, LinearOp b) { return order.isBefore(a, b); });
  SmallVector<Value> weights, biases;
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (LinearOp linear : linears) {
    for (Value v : llvm::concat<Value>(SmallVector<Value>(linear.getWeights()), SmallVector<Value>(linear.getBiases())))
      if (auto weight = v.getDefiningOp<WeightOp>(); weight && order.isBefore(first, weight)) {
        weight->moveBefore(first);
        order.movedTo(weight, first);
      }
    llvm::append_range(weights, linear.getWeights());
    llvm::append_range(biases, linear.getBiases());
    llvm::append_range(types, linear->getResultTypes());
    locations.push_back(linear.getLoc());
  }
  OpBuilder builder(first);
  auto stacked = builder.create<LinearOp>(builder.getFusedLoc(locations), types, first.getInput(), weights, biases);
  setLayer(stacked, getLayer(first));
  order.movedTo(stacked, first);
  for (auto [linear, result] : llvm::zip(linears, stacked.getOutputs())) {
    linear.getOutputs()[0].replaceAllUsesWith(result);
    Operation *op = linear;
    op->erase();
  }
  return success();
}
