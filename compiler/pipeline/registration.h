// Registers every dialect, pass and named pipeline of the compiler, for llmc and llmc-opt alike.
#pragma once

#include "mlir/IR/DialectRegistry.h"

namespace llmc {
void registerDialects(mlir::DialectRegistry &registry);
void registerPasses();
} // namespace llmc
