// The numbers of the model that decide a split, read off the ops of `@forward`.
#pragma once

#include "dialects/llm/LLMDialect.h"

#include "mlir/IR/BuiltinOps.h"

namespace llmc::dist {

struct ModelFacts {
  mlir::func::FuncOp forward;
  int64_t layers = 0;
  int64_t qHeads = 0, kvHeads = 0, headDim = 0; // the same in every layer
  int64_t ffn = 0;                              // the narrowest layer's
  int64_t vocab = 0;                            // rows of the embedding table

  // Emits an error and fails where there is no @forward or its layers differ in heads.
  static mlir::FailureOr<ModelFacts> of(mlir::ModuleOp module);
};

} // namespace llmc::dist
