// The dist dialect: classes generated from the .td files of this folder, and the names of its attributes.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/dist/DistDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

namespace llmc::dist {

// Module attributes.
inline constexpr llvm::StringLiteral kTopologyAttr = "dist.topology"; // #dist.topology
inline constexpr llvm::StringLiteral kMeshAttr = "dist.mesh";         // #dist.mesh
inline constexpr llvm::StringLiteral kLimitsAttr = "dist.limits";     // #dist.limits
// Op attributes of the logical form: arrays of shardings, one an operand or result, and the pipeline stage.
inline constexpr llvm::StringLiteral kInAttr = "dist.in";
inline constexpr llvm::StringLiteral kOutAttr = "dist.out";
inline constexpr llvm::StringLiteral kStageAttr = "dist.stage";
// Function attributes of the local form, all i64: this function's rank, stage and index in the TP group.
inline constexpr llvm::StringLiteral kRankAttr = "dist.rank";
inline constexpr llvm::StringLiteral kTpIndexAttr = "dist.tp_index";

inline bool isSharding(mlir::Attribute a) { return mlir::isa<ReplicatedAttr, PartialAttr, TilesAttr>(a); }

} // namespace llmc::dist
