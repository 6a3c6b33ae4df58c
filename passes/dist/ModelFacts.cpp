#include "passes/dist/ModelFacts.h"

#include <algorithm>

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

FailureOr<ModelFacts> ModelFacts::of(ModuleOp module) {
  ModelFacts facts;
  facts.forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!facts.forward || facts.forward.isDeclaration())
    return module.emitError() << "has no function @forward with a body";
  int64_t ffn = INT64_MAX;
  WalkResult result =
      facts.forward.walk(
          [&](Operation *op) -> WalkResult {
            if (auto attention = dyn_cast<llm::AttentionOp>(op)) {
              int64_t q = attention.getQHeads(), kv = attention.getKvHeads(), dim = attention.getHeadDim();
              if (facts.layers && (q != facts.qHeads || kv != facts.kvHeads || dim != facts.headDim))
                return op->emitError()
                       << "has " << q << " query and " << kv << " KV heads of " << dim
                       << " elements, the layers before have " << facts.qHeads << ", " << facts.kvHeads
                       << " and " << facts.headDim << ": layers that differ are not supported";
              // Heads are cut by groups of one KV head and its neighbouring query heads.
              for (auto [head, kvHead] : llvm::enumerate(llm::getKvHeadOfQ(attention)))
                if (q % kv != 0 || kvHead != static_cast<int64_t>(head) / (q / kv))
                  return op->emitError()
                         << "query head " << head << " reads KV head " << kvHead
                         << ": only heads whose neighbours share a KV head, equally many each, can be split";
              facts.qHeads = q, facts.kvHeads = kv, facts.headDim = dim;
              ++facts.layers;
            } else if (auto act = dyn_cast<llm::GatedActOp>(op)) {
              ffn = std::min(ffn, cast<RankedTensorType>(act.getType()).getDimSize(1));
            } else if (auto embedding = dyn_cast<llm::EmbeddingOp>(op)) {
              facts.vocab = cast<RankedTensorType>(embedding.getTable().getType()).getDimSize(0);
            }
            return success();
          });
  if (result.wasInterrupted())
    return failure();
  if (!facts.layers || !facts.vocab || ffn == INT64_MAX)
    return facts.forward.emitError()
           << "needs an embedding, attention and a gated feed-forward block to be split";
  facts.ffn = ffn;
  return facts;
}
