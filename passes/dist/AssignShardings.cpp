// dist-assign-shardings: decides, op by op and in program order, how the ranks of a stage share each operand
// and result. Only the products choose: all else follows from what they read.
#include "passes/analysis/Splits.h"
#include "passes/dist/ModelFacts.h"
#include "passes/dist/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace llmc::dist {
#define GEN_PASS_DEF_DISTASSIGNSHARDINGS
#include "passes/dist/Passes.h.inc"
} // namespace llmc::dist

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

// Borders of feed-forward and vocabulary tiles are multiples of this where the dimension is large enough: a
// block of GGUF's quantised types, and a multiple of the 16 rows of the packed CPU layout.
static constexpr int64_t kTileUnit = 32;

namespace {
class Assigner {
public:
  Assigner(ModelFacts facts, int64_t tp) : facts(facts), tp(tp), context(facts.forward.getContext()) {
    replicated = ReplicatedAttr::get(context);
    partial = PartialAttr::get(context);
    SmallVector<Extent> q, kv;
    for (const HeadExtents &heads : splitHeads(facts.qHeads, facts.kvHeads, tp)) {
      q.push_back(heads.q);
      kv.push_back(heads.kv);
    }
    qTiles = tiles(1, q, facts.headDim);
    kvTiles = tiles(1, kv, facts.headDim);
  }

  LogicalResult run();

private:
  ModelFacts facts;
  int64_t tp;
  MLIRContext *context;
  Attribute replicated, partial;
  TilesAttr qTiles, kvTiles;
  DenseMap<Value, Attribute> shardings; // of results seen so far

  // Extents counted in units of `width` elements.
  TilesAttr tiles(int64_t dim, ArrayRef<Extent> extents, int64_t width = 1) {
    SmallVector<int64_t> offsets, sizes;
    for (const Extent &e : extents) {
      offsets.push_back(e.begin * width);
      sizes.push_back(e.size * width);
    }
    return TilesAttr::get(context, dim, offsets, sizes);
  }
  TilesAttr onDim(TilesAttr t, int64_t dim) {
    return TilesAttr::get(context, dim, t.getOffsets(), t.getSizes());
  }
  // Null where there are fewer columns (or rows) than ranks.
  TilesAttr tilesOver(int64_t dim, int64_t total) {
    return total < tp ? TilesAttr() : tiles(dim, splitDimension(total, tp, kTileUnit));
  }

  Attribute of(Value v) { return shardings.lookup(v) ? shardings.lookup(v) : replicated; }
  Attribute columnTiles(Value result);
  void set(Operation *op, ArrayRef<Attribute> in, ArrayRef<Attribute> out);
  LogicalResult assignLinear(llm::LinearOp op);
  LogicalResult tooFew(Operation *op, int64_t have, StringRef what) {
    return op->emitError() << have << " " << what << " cannot be spread over " << tp << " ranks: lower --tp";
  }
  LogicalResult assign(Operation *op);
};
} // namespace

void Assigner::set(Operation *op, ArrayRef<Attribute> in, ArrayRef<Attribute> out) {
  op->setAttr(kInAttr, ArrayAttr::get(context, in));
  op->setAttr(kOutAttr, ArrayAttr::get(context, out));
  for (auto [result, sharding] : llvm::zip(op->getResults(), out))
    shardings[result] = sharding;
}

// How the columns of a product are shared follows from who reads them: heads for attention, tiles for a gated
// activation, vocabulary for logits. Anyone else wants all of them. Null where there are too few to share.
Attribute Assigner::columnTiles(Value result) {
  while (true) {
    int64_t width = cast<RankedTensorType>(result.getType()).getDimSize(1);
    Value next;
    for (OpOperand &use : result.getUses()) {
      Operation *user = use.getOwner();
      if (auto attention = dyn_cast<llm::AttentionOp>(user))
        return use.getOperandNumber() == 0 ? qTiles : kvTiles;
      if (isa<llm::GatedActOp, func::ReturnOp>(user))
        return tilesOver(1, width);
      if (auto rope = dyn_cast<llm::RopeOp>(user))
        next = use.getOperandNumber() == 0 ? rope.getQOut() : rope.getKOut();
      else if (auto norm = dyn_cast<llm::HeadNormOp>(user))
        next = norm.getResult();
    }
    if (!next)
      return replicated;
    result = next;
  }
}

LogicalResult Assigner::assignLinear(llm::LinearOp op) {
  SmallVector<Attribute> in, out;
  auto inputTiles = dyn_cast<TilesAttr>(of(op.getInput()));
  if (inputTiles && inputTiles.getDim() == 1 && inputTiles.disjoint()) {
    // Row-parallel: each rank multiplies the columns it has; a bias is added once.
    in.push_back(inputTiles);
    in.append(op.getWeights().size(), inputTiles);
    in.append(op.getBiases().size(), partial);
    out.append(op.getOutputs().size(), partial);
  } else {
    for (Value output : op.getOutputs()) {
      out.push_back(columnTiles(output));
      if (!out.back())
        return tooFew(op, cast<RankedTensorType>(output.getType()).getDimSize(1), "columns");
    }
    in.push_back(replicated);
    for (Attribute sharding : out)
      in.push_back(isa<TilesAttr>(sharding) ? Attribute(onDim(cast<TilesAttr>(sharding), 0)) : sharding);
    if (!op.getBiases().empty()) {
      SmallVector<Attribute> rows(in.begin() + 1, in.end());
      llvm::append_range(in, rows);
    }
  }
  set(op, in, out);
  return success();
}

LogicalResult Assigner::assign(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](llm::WeightOp) { return success(); }) // its users say
      .Case([&](llm::EmbeddingOp embedding) {
        int64_t rows = cast<RankedTensorType>(embedding.getTable().getType()).getDimSize(0);
        TilesAttr rowTiles = tilesOver(0, rows);
        if (!rowTiles)
          return tooFew(op, rows, "rows of vocabulary");
        set(op, {replicated, rowTiles}, {partial});
        return success();
      })
      .Case([&](llm::LinearOp linear) { return assignLinear(linear); })
      .Case([&](llm::HeadNormOp norm) {
        set(op, {of(norm.getInput()), replicated}, {of(norm.getInput())});
        return success();
      })
      .Case([&](llm::RopeOp rope) {
        SmallVector<Attribute> in(op->getNumOperands(), replicated);
        in[0] = of(rope.getQ()), in[1] = of(rope.getK());
        set(op, in, {in[0], in[1]});
        return success();
      })
      .Case([&](llm::AttentionOp) {
        set(op, {qTiles, kvTiles, kvTiles}, {qTiles});
        return success();
      })
      .Case([&](llm::GatedActOp act) {
        Attribute sharding = of(act.getGate());
        set(op, {sharding, sharding}, {sharding});
        return success();
      })
      .Case<llm::RmsNormOp, llm::AddOp, llm::AddRmsNormOp, llm::SelectRowsOp>([&](Operation *) {
        set(op, SmallVector<Attribute>(op->getNumOperands(), replicated),
            SmallVector<Attribute>(op->getNumResults(), replicated));
        return success();
      })
      .Case([&](func::ReturnOp) {
        set(op, SmallVector<Attribute>(op->getNumOperands(), replicated), {});
        return success();
      })
      .Default([](Operation *other) {
        return other->emitError() << "cannot be spread over ranks: no rule for this op";
      });
}

LogicalResult Assigner::run() {
  for (Operation &op : facts.forward.getBody().front())
    if (failed(assign(&op)))
      return failure();
  return success();
}

namespace {
struct AssignShardingsPass : llmc::dist::impl::DistAssignShardingsBase<AssignShardingsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!mesh) {
      module.emitError() << "has no " << kMeshAttr << ": run dist-assign-mesh first";
      return signalPassFailure();
    }
    FailureOr<ModelFacts> facts = ModelFacts::of(module);
    if (failed(facts))
      return signalPassFailure();
    if (mesh.getTp() > facts->qHeads) {
      module.emitError() << facts->qHeads << " query heads cannot be spread over " << mesh.getTp()
                         << " ranks: lower --tp";
      return signalPassFailure();
    }
    if (failed(Assigner(*facts, mesh.getTp()).run()))
      signalPassFailure();
  }
};
} // namespace
