// The order of the dist phase.
#include "passes/dist/Passes.h"

#include "mlir/Pass/PassManager.h"

void llmc::dist::buildDistPipeline(mlir::OpPassManager &pm, const DistPipelineOptions &options) {
  // The mesh first: shardings depend on tp, stage cuts on which devices form a stage.
  pm.addPass(createDistAssignMesh({options.tp, options.pp}));
  pm.addPass(createDistAssignShardings());
  // Naive insertion, then removal of what nobody needs: see the passes' descriptions.
  pm.addNestedPass<mlir::func::FuncOp>(createDistInsertCollectives());
  pm.addNestedPass<mlir::func::FuncOp>(createDistSimplifyCollectives());
  // Behind the collectives, so that a value crosses to the next stage whole.
  pm.addPass(createDistSplitStages());
  pm.addPass(createDistLocalize());
  pm.addPass(createDistVerify());
}
