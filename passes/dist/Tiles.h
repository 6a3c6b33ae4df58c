// Small helpers over shardings that several dist passes share.
#pragma once

#include "dialects/dist/DistDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llmc::dist {

// The type of what rank `tpIndex` of a stage holds of a value of `type`.
mlir::RankedTensorType localType(mlir::RankedTensorType type, mlir::Attribute sharding, int64_t tpIndex);

// Bytes of that; the dynamic dimension counts as one.
uint64_t localBytes(mlir::RankedTensorType type, mlir::Attribute sharding, int64_t tpIndex);

// Emits an error and fails where tiles on an op of `function` are for another number of ranks than `tp`, so
// that the two functions above may be asked for any rank of a stage. An op that computes must have its
// shardings.
mlir::LogicalResult checkShardings(mlir::func::FuncOp function, int64_t tp);

} // namespace llmc::dist
