// llm-fuse-qkv: q, k and v read the same input, so one product over stacked weights reads it once and keeps the
// memory system busy with one long stream in place of three short ones.
#include "passes/llm/FuseLinears.h"
#include "passes/llm/Passes.h"

namespace llmc::llm {
#define GEN_PASS_DEF_LLMFUSEQKV
#include "passes/llm/Passes.h.inc"
} // namespace llmc::llm

using namespace mlir;
using namespace llmc::llm;

namespace {
struct FuseQkvPass : llmc::llm::impl::LLMFuseQkvBase<FuseQkvPass> {
  void runOnOperation() override {
    OpOrder order(getOperation());
    getOperation().walk([&](AttentionOp attention) {
      (void)stackLinears({findSingleProjection(attention.getQ()), findSingleProjection(attention.getK()),
                          findSingleProjection(attention.getV())},
                         order);
    });
  }
};
} // namespace
