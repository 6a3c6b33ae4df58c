// llm-fuse-gate-up: gate and up are the largest weights of a layer and read the same input; stacked they are one
// product, whose epilogue can later apply the activation.
#include "passes/llm/FuseLinears.h"
#include "passes/llm/Passes.h"

namespace llmc::llm {
#define GEN_PASS_DEF_LLMFUSEGATEUP
#include "passes/llm/Passes.h.inc"
} // namespace llmc::llm

using namespace mlir;
using namespace llmc::llm;

namespace {
struct FuseGateUpPass : llmc::llm::impl::LLMFuseGateUpBase<FuseGateUpPass> {
  void runOnOperation() override {
    OpOrder order(getOperation());
    getOperation().walk([&](GatedActOp act) {
      (void)stackLinears({findSingleProjection(act.getGate()), findSingleProjection(act.getUp())}, order);
    });
  }
};
} // namespace
