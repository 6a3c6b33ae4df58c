// Declares the passes of the exec phase, their registration, and the phase's pipeline.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/exec/ExecDialect.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
}

namespace llmc::exec {

#define GEN_PASS_DECL
#include "passes/exec/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/exec/Passes.h.inc"

struct ExecPipelineOptions : mlir::PassPipelineOptions<ExecPipelineOptions> {
  Option<bool> shortenModelLen{*this, "shorten-model-len", llvm::cl::desc("Lower max_model_len to what fits"),
                               llvm::cl::init(false)};
  Option<bool> keepQuantized{*this, "keep-quantized", llvm::cl::desc("Keep block formats that kernels multiply as they are"),
                             llvm::cl::init(false)};
};

// The phase's passes in order; each comment in the definition says why it stands there.
void buildExecPipeline(mlir::OpPassManager &pm, const ExecPipelineOptions &options);

} // namespace llmc::exec
