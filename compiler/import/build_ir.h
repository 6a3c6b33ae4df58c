// Turns a ModelSpec into the llm dialect: one function `@forward` with unrolled layers.
#pragma once

#include "compiler/import/model_spec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llmc {

struct BuildOptions {
  mlir::Type weightType;     // of matrices in device memory; vectors (norms, biases) are f32
  mlir::Type activationType; // of everything between ops; logits are f32
};

// The context must have the llm and func dialects loaded. The spec must be complete: every tensor that the
// architecture needs is in spec.tensors, which the importers guarantee.
mlir::OwningOpRef<mlir::ModuleOp> buildModel(mlir::MLIRContext *context, const ModelSpec &spec,
                                             const BuildOptions &options);

} // namespace llmc
