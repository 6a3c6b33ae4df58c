// Declares the passes of the llm phase, their registration, and the phase's pipeline.
#pragma once

#include "dialects/llm/LLMDialect.h"

#include "mlir/Pass/Pass.h"

namespace mlir {
class OpPassManager;
}

namespace llmc::llm {

#define GEN_PASS_DECL
#include "passes/llm/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/llm/Passes.h.inc"

// The phase's passes in order; each comment in the definition says why it stands there.
void buildLLMPipeline(mlir::OpPassManager &pm);

} // namespace llmc::llm
