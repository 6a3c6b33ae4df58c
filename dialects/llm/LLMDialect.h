// The llm dialect: classes generated from the .td files of this folder, and the helpers around `llm.layer`.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

#include "dialects/llm/LLMDialect.h.inc"
#include "dialects/llm/LLMEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/llm/LLMAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/llm/LLMOps.h.inc"

namespace llmc::llm {

// Name of the attribute that says which model layer an op belongs to.
inline constexpr llvm::StringLiteral kLayerAttr = "llm.layer";
// Module attribute: array of file dictionaries {path, bytes, header_hash, header_bytes}, indexed by #llm.tensor's `file`.
inline constexpr llvm::StringLiteral kFilesAttr = "llm.files";

// The layer of an op; nothing for ops outside the layers (embedding, final norm, lm_head).
std::optional<int64_t> getLayer(mlir::Operation *op);
void setLayer(mlir::Operation *op, std::optional<int64_t> layer);

// The KV head that each query head of an attention op reads: `kv_head_of_q`, or its default spelled out.
llvm::SmallVector<int64_t> getKvHeadOfQ(AttentionOp op);

} // namespace llmc::llm
