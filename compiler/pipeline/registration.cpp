#include "compiler/pipeline/registration.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/exec/ExecDialect.h"
#include "dialects/llm/LLMDialect.h"
#include "passes/dist/Passes.h"
#include "passes/exec/Passes.h"
#include "passes/llm/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

void llmc::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::func::FuncDialect, llm::LLMDialect, dist::DistDialect, exec::ExecDialect>();
}

void llmc::registerPasses() {
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  llm::registerLLMPasses();
  dist::registerDistPasses();
  exec::registerExecPasses();
  static mlir::PassPipelineRegistration<> llmPipeline("llm-pipeline", "All passes of the llm phase, in order",
                                                      llm::buildLLMPipeline);
  static mlir::PassPipelineRegistration<dist::DistPipelineOptions> distPipeline(
      "dist-pipeline", "All passes of the dist phase, in order", dist::buildDistPipeline);
  static mlir::PassPipelineRegistration<exec::ExecPipelineOptions> execPipeline(
      "exec-pipeline", "All passes of the exec phase, in order", exec::buildExecPipeline);
}
