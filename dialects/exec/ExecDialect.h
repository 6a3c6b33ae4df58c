// The exec dialect: classes generated from the .td files of this folder.
#pragma once

#include "dialects/llm/LLMDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/exec/ExecDialect.h.inc"
#include "dialects/exec/ExecEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/exec/ExecOps.h.inc"

namespace llmc::exec {

// Module attribute, i64: pages of the KV pool, the same on every rank.
inline constexpr llvm::StringLiteral kNumPagesAttr = "exec.num_pages";

// Whether an op becomes an entry of the plan's program (all but weight, buffer, columns and output).
bool isExecuted(mlir::Operation *op);

// The op that runs right after `op`; null behind the last.
mlir::Operation *nextExecuted(mlir::Operation *op);

// The exec.buffer behind a buffer value, through exec.columns, and the first column of the value in it.
std::pair<BufferOp, int64_t> resolveView(mlir::Value value);

} // namespace llmc::exec
