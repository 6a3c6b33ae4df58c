// dist-split-stages: a pipeline is as fast as its slowest stage, and its KV capacity is that of its poorest
// rank; both follow from where the layers are cut, with the embedding and lm_head counted where they fall.
#include "passes/analysis/StageCuts.h"
#include "passes/dist/ModelFacts.h"
#include "passes/dist/Passes.h"
#include "passes/dist/Tiles.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>

namespace llmc::dist {
#define GEN_PASS_DEF_DISTSPLITSTAGES
#include "passes/dist/Passes.h.inc"
} // namespace llmc::dist

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

namespace {
// Position of an op along the pipeline: before the layers, in layer i, or behind them.
struct Place {
  int64_t layer;
  static constexpr int64_t kHead = -1, kTail = INT64_MAX;
};

class Splitter {
public:
  Splitter(ModelFacts facts, MeshAttr mesh, TopologyAttr topology, LimitsAttr limits)
      : facts(facts), mesh(mesh), topology(topology), limits(limits) {}

  void run() {
    findPlaces();
    StageCuts cuts = cutStages(describe());
    first = cuts.firstLayer;
    separateNorms();
    markStages();
    insertTransfers();
  }

private:
  ModelFacts facts;
  MeshAttr mesh;
  TopologyAttr topology;
  LimitsAttr limits;
  llvm::DenseMap<Operation *, int64_t> places;
  SmallVector<int64_t> first; // first layer of each stage

  void findPlaces();
  StageCutProblem describe();
  void separateNorms();
  void markStages();
  void insertTransfers();
  int64_t stageOf(int64_t place) const {
    if (place == Place::kHead)
      return 0;
    if (place == Place::kTail)
      return mesh.getPp() - 1;
    return std::distance(first.begin(), llvm::upper_bound(first, place)) - 1;
  }
};
} // namespace

void Splitter::findPlaces() {
  int64_t place = Place::kHead, next = 0;
  for (Operation &op : facts.forward.getBody().front()) {
    if (isa<llm::WeightOp>(op))
      continue; // loaded wherever it is used
    if (auto layer = llm::getLayer(&op)) {
      place = *layer;
      next = place + 1;
    } else if (next == facts.layers) {
      place = Place::kTail;
    }
    places[&op] = place;
  }
}

// Adds up the bytes that each rank of a stage would hold, layer by layer.
StageCutProblem Splitter::describe() {
  StageCutProblem p;
  p.tp = mesh.getTp(), p.stages = mesh.getPp();
  LayerCost none{SmallVector<uint64_t>(p.tp, 0), SmallVector<uint64_t>(p.tp, 0)};
  p.layers.assign(facts.layers, none);
  p.head = p.tail = none;
  llvm::DenseSet<Value> headWeights;
  uint64_t kvElementBytes = limits.getKvDtype().getIntOrFloatBitWidth() / 8;

  for (Operation &op : facts.forward.getBody().front()) {
    auto in = op.getAttrOfType<ArrayAttr>(kInAttr);
    if (!in || !places.count(&op))
      continue;
    int64_t place = places[&op];
    LayerCost &cost = place == Place::kHead ? p.head : place == Place::kTail ? p.tail : p.layers[place];
    for (auto [operand, sharding] : llvm::zip(op.getOperands(), in)) {
      if (!operand.getDefiningOp<llm::WeightOp>())
        continue;
      if (place == Place::kHead)
        headWeights.insert(operand);
      p.tied |= place == Place::kTail && headWeights.contains(operand);
      for (int64_t t = 0; t < p.tp; ++t)
        cost.weightBytes[t] += localBytes(cast<RankedTensorType>(operand.getType()), sharding, t);
    }
    if (auto attention = dyn_cast<llm::AttentionOp>(op))
      for (int64_t t = 0; t < p.tp; ++t) {
        auto local = localType(attention.getK().getType(), in[1], t);
        cost.kvBytes[t] += 2 * kvElementBytes * local.getDimSize(1);
      }
  }

  double share = limits.getMemoryUtilization().getValueAsDouble();
  for (int64_t s = 0; s < p.stages; ++s) {
    auto &row = p.devices.emplace_back();
    for (int64_t t = 0; t < p.tp; ++t) {
      DeviceAttr device = topology.getDevices()[mesh.getDevices()[mesh.rank(s, t)]];
      uint64_t budget = static_cast<uint64_t>(share * static_cast<double>(device.getMemory()));
      row.push_back({std::max(device.getBandwidth().getValueAsDouble(), 1.0),
                     budget > device.getReserved() ? budget - device.getReserved() : 0});
    }
  }
  return p;
}

// An add_rms_norm belongs to the layer of its norm. Where that layer opens a stage, the sum must be made, and
// sent, by the stage before, and the norm computed behind the border.
void Splitter::separateNorms() {
  SmallVector<llm::AddRmsNormOp> fused;
  for (auto [op, place] : places)
    if (auto norm = dyn_cast<llm::AddRmsNormOp>(op);
        norm && llvm::is_contained(llvm::drop_begin(first), place))
      fused.push_back(norm);
  for (llm::AddRmsNormOp norm : fused) {
    Operation *producer = norm.getInput().getDefiningOp();
    if (!producer || places.lookup(producer) == places.lookup(norm))
      continue; // an addition inside the layer
    int64_t before = places.lookup(producer);
    OpBuilder builder(norm);
    Attribute replicated = ReplicatedAttr::get(norm.getContext());
    auto add = builder.create<llm::AddOp>(norm.getLoc(), norm.getSum().getType(), norm.getResidual(),
                                          norm.getInput());
    llm::setLayer(add, before);
    auto alone =
        builder.create<llm::RmsNormOp>(norm.getLoc(), norm.getNormed().getType(), add, norm.getWeight(),
                                       norm.getEpsAttr(), norm.getWeightOffsetAttr());
    llm::setLayer(alone, llm::getLayer(norm));
    for (Operation *op : {add.getOperation(), alone.getOperation()}) {
      op->setAttr(kInAttr, builder.getArrayAttr({replicated, replicated}));
      op->setAttr(kOutAttr, builder.getArrayAttr({replicated}));
    }
    places[add] = before;
    places[alone] = places.lookup(norm);
    norm.getSum().replaceAllUsesWith(add.getResult());
    norm.getNormed().replaceAllUsesWith(alone.getResult());
    places.erase(norm);
    norm.erase();
  }
}

void Splitter::markStages() {
  Builder builder(facts.forward.getContext());
  for (auto [op, place] : places)
    op->setAttr(kStageAttr, builder.getI64IntegerAttr(stageOf(place)));
}

// A value used in a later stage crosses once for that stage, right behind its definition.
void Splitter::insertTransfers() {
  std::map<std::pair<void *, int64_t>, Value> crossed;
  for (Operation &op : llvm::make_early_inc_range(facts.forward.getBody().front())) {
    auto stage = op.getAttrOfType<IntegerAttr>(kStageAttr);
    if (!stage || isa<TransferOp>(op))
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      Operation *producer = operand.get().getDefiningOp();
      auto from = producer ? producer->getAttrOfType<IntegerAttr>(kStageAttr) : IntegerAttr();
      if (!from || from == stage)
        continue;
      Value &transferred = crossed[{operand.get().getAsOpaquePointer(), stage.getInt()}];
      if (!transferred) {
        OpBuilder builder(op.getContext());
        builder.setInsertionPointAfter(producer);
        transferred = builder.create<TransferOp>(producer->getLoc(), operand.get().getType(), operand.get(),
                                                 builder.getI64IntegerAttr(from.getInt()),
                                                 builder.getI64IntegerAttr(stage.getInt()));
        llm::setLayer(transferred.getDefiningOp(), llm::getLayer(producer));
      }
      operand.set(transferred);
    }
  }
}

// Layers are those that have an attention, numbered from 0.
static LogicalResult checkLayers(const ModelFacts &facts) {
  for (Operation &op : facts.forward->getRegion(0).front())
    if (auto layer = llm::getLayer(&op); layer && *layer >= facts.layers)
      return op.emitError() << "belongs to layer " << *layer << " of a model of " << facts.layers;
  return success();
}

namespace {
struct SplitStagesPass : llmc::dist::impl::DistSplitStagesBase<SplitStagesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    auto topology = module->getAttrOfType<TopologyAttr>(kTopologyAttr);
    auto limits = module->getAttrOfType<LimitsAttr>(kLimitsAttr);
    if (!mesh || !topology || !limits) {
      module.emitError() << "needs " << kTopologyAttr << ", " << kMeshAttr << " and " << kLimitsAttr;
      return signalPassFailure();
    }
    FailureOr<ModelFacts> facts = ModelFacts::of(module);
    if (failed(facts))
      return signalPassFailure();
    if (mesh.getPp() > facts->layers) {
      module.emitError() << facts->layers << " layers cannot be cut into " << mesh.getPp() << " stages";
      return signalPassFailure();
    }
    if (failed(checkShardings(facts->forward, mesh.getTp())) || failed(checkLayers(*facts)))
      return signalPassFailure();
    Splitter(*facts, mesh, topology, limits).run();
  }
};
} // namespace
