// Small helpers over shardings that several dist passes share.
#pragma once

#include "dialects/dist/DistDialect.h"

namespace llmc::dist {

// The type of what rank `tpIndex` of a stage holds of a value of `type`.
mlir::RankedTensorType localType(mlir::RankedTensorType type, mlir::Attribute sharding, int64_t tpIndex);

// Bytes of that; the dynamic dimension counts as one.
uint64_t localBytes(mlir::RankedTensorType type, mlir::Attribute sharding, int64_t tpIndex);

} // namespace llmc::dist
