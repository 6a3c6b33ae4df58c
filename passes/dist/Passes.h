// Declares the passes of the dist phase, their registration, and the phase's pipeline.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/llm/LLMDialect.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
}

namespace llmc::dist {

#define GEN_PASS_DECL
#include "passes/dist/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/dist/Passes.h.inc"

struct DistPipelineOptions : mlir::PassPipelineOptions<DistPipelineOptions> {
  Option<int64_t> tp{*this, "tp", llvm::cl::desc("Ranks that share each layer"), llvm::cl::init(1)};
  Option<int64_t> pp{*this, "pp", llvm::cl::desc("Pipeline stages"), llvm::cl::init(1)};
};

// The phase's passes in order; each comment in the definition says why it stands there.
void buildDistPipeline(mlir::OpPassManager &pm, const DistPipelineOptions &options);

} // namespace llmc::dist
