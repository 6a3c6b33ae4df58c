// The order of the exec phase.
#include "passes/exec/Passes.h"

#include "mlir/Pass/PassManager.h"

void llmc::exec::buildExecPipeline(mlir::OpPassManager &pm, const ExecPipelineOptions &options) {
  pm.addPass(createConvertDistToExec());
  // Before memory: layouts decide how many bytes a weight takes, kernels how much scratch.
  pm.addPass(createExecSelectKernels({options.keepQuantized}));
  pm.addPass(createExecPlanMemory());
  // Behind memory: pages take what is left.
  pm.addPass(createExecPlanKvPages({options.shortenModelLen}));
  pm.addPass(createExecVerify());
}
