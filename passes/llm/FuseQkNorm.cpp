// llm-fuse-qk-norm: a head norm touches each head once, just before rope touches it again; one kernel does both while
// the head is in registers.
#include "passes/llm/Passes.h"

namespace llmc::llm {
#define GEN_PASS_DEF_LLMFUSEQKNORM
#include "passes/llm/Passes.h.inc"
} // namespace llmc::llm

using namespace mlir;
using namespace llmc::llm;

namespace {
struct FuseQkNormPass : llmc::llm::impl::LLMFuseQkNormBase<FuseQkNormPass> {
  void runOnOperation() override {
    getOperation().walk([](RopeOp rope) {
      auto q = rope.getQ().getDefiningOp<HeadNormOp>(), k = rope.getK().getDefiningOp<HeadNormOp>();
      // The fused op has one eps and normalises in place: both norms must agree and serve nothing else.
      if (!q || !k || rope.getQNorm() || q.getEps() != k.getEps() || !q->hasOneUse() || !k->hasOneUse() ||
          q.getHeadDim() != rope.getHeadDim() || k.getHeadDim() != rope.getHeadDim())
        return;
      rope.getQMutable().assign(q.getInput());
      rope.getKMutable().assign(k.getInput());
      rope.getQNormMutable().assign(q.getWeight());
      rope.getKNormMutable().assign(k.getWeight());
      rope.setEps(q.getEps());
      q.erase();
      k.erase();
    });
  }
};
} // namespace
