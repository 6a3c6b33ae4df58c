// The order of the llm phase.
#include "passes/llm/Passes.h"

#include "mlir/Pass/PassManager.h"

void llmc::llm::buildLLMPipeline(mlir::OpPassManager &pm) {
  mlir::OpPassManager &functions = pm.nest<mlir::func::FuncOp>();
  // Head norms first: with them gone, llm-fuse-qkv sees rope right behind the projections.
  functions.addPass(createLLMFuseQkNorm());
  functions.addPass(createLLMFuseQkv());
  functions.addPass(createLLMFuseGateUp());
  // Last of the fusions: it moves nothing that the others look for.
  functions.addPass(createLLMFuseAddNorm());
  pm.addPass(createLLMVerifyModel());
}
