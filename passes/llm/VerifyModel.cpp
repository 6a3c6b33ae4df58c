// llm-verify-model: closes the llm phase by checking what no single op can see, so that later phases may rely
// on it.
#include "passes/llm/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace llmc::llm {
#define GEN_PASS_DEF_LLMVERIFYMODEL
#include "passes/llm/Passes.h.inc"
} // namespace llmc::llm

using namespace mlir;
using namespace llmc::llm;

// (ids, positions, logits_rows) -> logits
static LogicalResult checkSignature(func::FuncOp forward) {
  FunctionType type = forward.getFunctionType();
  auto index = RankedTensorType::get({ShapedType::kDynamic}, IntegerType::get(forward.getContext(), 32));
  if (type.getInputs() != ArrayRef<Type>{index, index, index} || type.getNumResults() != 1)
    return forward.emitError() << "@forward must take (ids, positions, logits_rows), each " << index
                               << ", and return logits, but is " << type;
  return success();
}

// Layers rise by one along the function, and each has one attention.
static LogicalResult checkLayers(func::FuncOp forward) {
  int64_t next = 0, current = 0;
  for (Operation &op : forward.getBody().front()) {
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      if (static_cast<int64_t>(attention.getLayer()) != next)
        return attention.emitError() << "attention of layer " << attention.getLayer()
                                     << " stands where layer " << next << " is due";
      if (getLayer(attention) != next)
        return attention.emitError() << "attention of layer " << next << " must carry " << kLayerAttr << " = "
                                     << next << " : i32";
      ++next;
    }
    auto layer = getLayer(&op);
    if (!layer || isa<WeightOp>(op))
      continue;
    if (*layer < current || *layer > current + 1)
      return op.emitError() << "op of layer " << *layer << " stands among those of layer " << current;
    current = *layer;
  }
  if (next == 0)
    return forward.emitError() << "@forward has no attention";
  if (current >= next)
    return forward.emitError() << "layer " << current << " has no attention";
  return success();
}

static LogicalResult checkRope(RopeOp rope) {
  for (Operation *user : rope.getQOut().getUsers())
    if (auto attention = dyn_cast<AttentionOp>(user);
        attention && attention.getHeadDim() != rope.getHeadDim())
      return rope.emitError() << "rotates heads of " << rope.getHeadDim()
                              << " elements that attention takes as " << attention.getHeadDim();
  return success();
}

namespace {
struct VerifyModelPass : llmc::llm::impl::LLMVerifyModelBase<VerifyModelPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward || forward.isDeclaration() || !llvm::hasSingleElement(module.getOps<func::FuncOp>())) {
      module.emitError() << "must hold one function, @forward, with its body";
      return signalPassFailure();
    }
    if (failed(checkSignature(forward)) || failed(checkLayers(forward)))
      return signalPassFailure();

    llvm::StringSet<> names;
    WalkResult result = forward.walk([&](Operation *op) -> WalkResult {
      if (auto weight = dyn_cast<WeightOp>(op); weight && !names.insert(weight.getName()).second)
        return weight.emitError() << "loads '" << weight.getName() << "' a second time";
      if (auto rope = dyn_cast<RopeOp>(op))
        return checkRope(rope);
      return success();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
