// llm-fuse-add-norm: the residual stream is read and written once per norm in place of twice, and an all-reduce can
// later be fused in front of the pair.
#include "passes/llm/Passes.h"

namespace llmc::llm {
#define GEN_PASS_DEF_LLMFUSEADDNORM
#include "passes/llm/Passes.h.inc"
} // namespace llmc::llm

using namespace mlir;
using namespace llmc::llm;

namespace {
struct FuseAddNormPass : llmc::llm::impl::LLMFuseAddNormBase<FuseAddNormPass> {
  void runOnOperation() override {
    SmallVector<RmsNormOp> norms;
    getOperation().walk([&](RmsNormOp norm) { norms.push_back(norm); });
    for (RmsNormOp norm : norms) {
      auto add = norm.getInput().getDefiningOp<AddOp>();
      if (!add || add->getBlock() != norm->getBlock())
        continue;
      // The joint op stands where the norm stood, so the norm must come before the sum's other uses.
      if (llvm::any_of(add->getUsers(), [&](Operation *user) { return user != norm && user->isBeforeInBlock(norm); }))
        continue;
      OpBuilder builder(norm);
      auto fused = builder.create<AddRmsNormOp>(builder.getFusedLoc({add.getLoc(), norm.getLoc()}), add.getLhs(),
                                                add.getRhs(), norm.getWeight(), norm.getEpsAttr(),
                                                norm.getWeightOffsetAttr());
      setLayer(fused, getLayer(norm));
      norm.getResult().replaceAllUsesWith(fused.getNormed());
      norm.erase();
      add.getResult().replaceAllUsesWith(fused.getSum());
      add.erase();
    }
  }
};
} // namespace
