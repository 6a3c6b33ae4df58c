// dist-simplify-collectives: after naive insertion every tiled value is gathered. This pass keeps only the collectives
// whose result somebody really needs.
#include "passes/dist/Passes.h"

namespace llmc::dist {
#define GEN_PASS_DEF_DISTSIMPLIFYCOLLECTIVES
#include "passes/dist/Passes.h.inc"
} // namespace llmc::dist

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

// Logits are sampled on the first rank of the stage: nobody else needs them whole.
static void gatherToRoot(AllGatherOp gather) {
  OpBuilder builder(gather);
  auto rooted = builder.create<GatherOp>(gather.getLoc(), gather.getType(), gather.getInput(), gather.getTiles(),
                                         builder.getI64IntegerAttr(0), DenseI64ArrayAttr(), IntegerAttr());
  llm::setLayer(rooted, llm::getLayer(gather));
  gather.getResult().replaceAllUsesWith(rooted.getResult());
  gather.erase();
}

namespace {
struct SimplifyCollectivesPass : llmc::dist::impl::DistSimplifyCollectivesBase<SimplifyCollectivesPass> {
  void runOnOperation() override {
    SmallVector<SliceOp> slices;
    SmallVector<AllGatherOp> gathers;
    getOperation().walk([&](Operation *op) {
      if (auto slice = dyn_cast<SliceOp>(op))
        slices.push_back(slice);
      else if (auto gather = dyn_cast<AllGatherOp>(op))
        gathers.push_back(gather);
    });
    for (SliceOp slice : slices) {
      SmallVector<OpFoldResult> folded;
      if (succeeded(slice->fold(folded)) && !folded.empty()) {
        slice.getResult().replaceAllUsesWith(cast<Value>(folded[0]));
        slice.erase();
      }
    }
    for (AllGatherOp gather : gathers) {
      if (gather->use_empty())
        gather.erase();
      else if (llvm::all_of(gather->getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); }))
        gatherToRoot(gather);
    }
  }
};
} // namespace
