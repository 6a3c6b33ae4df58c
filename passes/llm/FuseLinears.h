// Stacks linear ops over one input into one: shared by llm-fuse-qkv and llm-fuse-gate-up.
#pragma once

#include "dialects/llm/LLMDialect.h"

namespace llmc::llm {

// Walks from an operand of attention or a gated activation back to the projection that made it, through rope and
// head norms. Null where something else made it, or where the projection is stacked already.
LinearOp findSingleProjection(mlir::Value value);

// Replaces the projections, in this order, by one stacked linear at the last of them. Does nothing and returns failure
// unless there are at least two distinct ones, all in one block, over one input, all with a bias or all without.
mlir::LogicalResult stackLinears(llvm::SmallVector<LinearOp, 3> linears);

} // namespace llmc::llm
