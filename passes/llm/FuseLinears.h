// Stacks linear ops over one input into one: shared by llm-fuse-qkv and llm-fuse-gate-up.
#pragma once

#include "dialects/llm/LLMDialect.h"

#include "llvm/ADT/DenseMap.h"

namespace llmc::llm {

// Where the ops of a function stand. Blocks number their ops anew after each change, which for thousands of layers takes a
// minute; the passes here only move ops ahead and put one in another's place, so numbers taken once do.
class OpOrder {
public:
  explicit OpOrder(mlir::func::FuncOp function);
  bool isBefore(mlir::Operation *a, mlir::Operation *b) const { return place.lookup(a) < place.lookup(b); }
  void movedTo(mlir::Operation *op, mlir::Operation *where) { place[op] = place.lookup(where); }

private:
  llvm::DenseMap<mlir::Operation *, size_t> place;
};

// Walks from an operand of attention or a gated activation back to the projection that made it, through rope and
// head norms. Null where something else made it, or where the projection is stacked already.
LinearOp findSingleProjection(mlir::Value value);

// Replaces the projections, in this order, by one stacked linear where the first of them stands. Does nothing and returns failure
// unless there are at least two distinct ones, all in one block, over one input, all with a bias or all without.
mlir::LogicalResult stackLinears(llvm::SmallVector<LinearOp, 3> linears, OpOrder &order);

} // namespace llmc::llm
