// dist-localize: from here on each rank has a program of its own, so all that differs between ranks (shapes,
// heads, vocabulary ranges, groups, peers) becomes a constant of that program.
#include "passes/dist/Passes.h"
#include "passes/dist/Tiles.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

namespace llmc::dist {
#define GEN_PASS_DEF_DISTLOCALIZE
#include "passes/dist/Passes.h.inc"
} // namespace llmc::dist

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

namespace {
// What is known over all ranks while their programs are written one after the other.
struct SharedState {
  // Stage that first holds a weight; later stages (a tied table on the last one) hold replicas only.
  llvm::DenseMap<Operation *, int64_t> firstStage;
};

// Writes the program of one rank.
class RankWriter {
public:
  RankWriter(func::FuncOp forward, MeshAttr mesh, int64_t stage, int64_t tpIndex, SharedState &shared)
      : forward(forward), mesh(mesh), stage(stage), tp(tpIndex), shared(shared),
        builder(forward.getContext()) {
    for (int64_t t = 0; t < mesh.getTp(); ++t)
      groupRanks.push_back(mesh.rank(stage, t));
  }

  func::FuncOp write();

private:
  func::FuncOp forward;
  MeshAttr mesh;
  int64_t stage, tp;
  SharedState &shared;
  OpBuilder builder;
  IRMapping mapping;
  SmallVector<int64_t> groupRanks;
  int64_t nextSeq = 0;
  std::map<int64_t, int64_t> sendSeq, recvSeq; // by peer
  llvm::MapVector<std::pair<Operation *, Attribute>, Value> weights;

  bool alone() const { return mesh.getTp() == 1; }
  void writeOp(Operation &op);
  void writeReturn(func::ReturnOp op);
  void writeTransfer(TransferOp op);
  void writeCollective(Operation *op);
  void writeCompute(Operation &op);
  Value weight(llm::WeightOp op, Attribute sharding);
  SmallVector<Attribute> boxes(llm::WeightOp op, Attribute sharding);
  void adjust(llm::EmbeddingOp op, ArrayAttr in);
  void adjust(llm::AttentionOp op, llm::AttentionOp logical, ArrayAttr in);
  DenseI64ArrayAttr groupAttr() { return builder.getDenseI64ArrayAttr(groupRanks); }
  IntegerAttr seqAttr() { return builder.getI64IntegerAttr(nextSeq++); }
};
} // namespace

// The boxes of a weight that this rank holds. Where tiles overlap, the part that a lower rank of the stage
// holds too is a replica.
SmallVector<Attribute> RankWriter::boxes(llm::WeightOp op, Attribute sharding) {
  RankedTensorType type = op.getResult().getType();
  bool vector = type.getRank() == 1;
  int64_t rows = vector ? 1 : type.getDimSize(0), cols = type.getShape().back();
  bool laterStage = shared.firstStage.lookup(op) != stage;
  auto box = [&](int64_t row, int64_t nRows, int64_t col, int64_t nCols, bool replica) {
    return llm::BoxAttr::get(op.getContext(), row, nRows, col, nCols, replica || laterStage);
  };
  auto tiles = dyn_cast<TilesAttr>(sharding);
  if (!tiles) // whole on every rank, or (partial) on the first alone
    return {box(0, rows, 0, cols, tp != 0)};
  int64_t begin = tiles.getOffsets()[tp], end = begin + tiles.getSizes()[tp], held = 0;
  for (int64_t t = 0; t < tp; ++t)
    held = std::max(held, tiles.getOffsets()[t] + tiles.getSizes()[t]);
  SmallVector<Attribute> result;
  auto add = [&](int64_t from, int64_t to, bool replica) {
    if (from >= to)
      return;
    bool alongColumns = vector || tiles.getDim() == 1;
    result.push_back(alongColumns ? box(0, rows, from, to - from, replica)
                                  : box(from, to - from, 0, cols, replica));
  };
  add(begin, std::min(end, std::max(begin, held)), true);
  add(std::max(begin, held), end, false);
  return result;
}

Value RankWriter::weight(llm::WeightOp op, Attribute sharding) {
  Value &value = weights[{op, sharding}];
  if (value)
    return value;
  OpBuilder::InsertionGuard guard(builder);
  auto local = builder.create<llm::WeightOp>(op.getLoc(), localType(op.getResult().getType(), sharding, tp),
                                             op.getNameAttr(), op.getTensorAttr(),
                                             builder.getArrayAttr(boxes(op, sharding)));
  llm::setLayer(local, llm::getLayer(op));
  return value = local.getResult();
}

void RankWriter::adjust(llm::EmbeddingOp op, ArrayAttr in) {
  if (auto tiles = dyn_cast<TilesAttr>(in[1]))
    op.setVocabBegin(tiles.getOffsets()[tp]);
}

// Heads of this rank, and the KV head (counted locally) that each of its query heads reads.
void RankWriter::adjust(llm::AttentionOp op, llm::AttentionOp logical, ArrayAttr in) {
  int64_t dim = logical.getHeadDim(), q0 = 0, kv0 = 0, qn = logical.getQHeads(), kvn = logical.getKvHeads();
  if (auto tiles = dyn_cast<TilesAttr>(in[0]))
    q0 = tiles.getOffsets()[tp] / dim, qn = tiles.getSizes()[tp] / dim;
  if (auto tiles = dyn_cast<TilesAttr>(in[1]))
    kv0 = tiles.getOffsets()[tp] / dim, kvn = tiles.getSizes()[tp] / dim;
  SmallVector<int64_t> all = llm::getKvHeadOfQ(logical), map, ids;
  for (int64_t q = q0; q < q0 + qn; ++q)
    map.push_back(all[q] - kv0);
  for (int64_t kv = kv0; kv < kv0 + kvn; ++kv)
    ids.push_back(kv);
  op.setQHeads(qn);
  op.setKvHeads(kvn);
  op.setKvHeadOfQ(map);
  op.setKvHeadIds(ids);
}

void RankWriter::writeCompute(Operation &op) {
  auto in = op.getAttrOfType<ArrayAttr>(kInAttr), out = op.getAttrOfType<ArrayAttr>(kOutAttr);
  // A bias that is added once, by the first rank.
  auto linear = dyn_cast<llm::LinearOp>(op);
  bool dropBias = linear && !linear.getBiases().empty() && tp != 0 && isa<PartialAttr>(in[in.size() - 1]);

  IRMapping operands;
  for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
    if (auto source = operand.getDefiningOp<llm::WeightOp>()) {
      bool unused = dropBias && i > linear.getWeights().size();
      operands.map(operand, unused ? operand : weight(source, in[i]));
    } else {
      operands.map(operand, mapping.lookup(operand));
    }
  }
  Operation *local = builder.clone(op, operands);
  for (StringRef name : {StringRef(kInAttr), StringRef(kOutAttr), StringRef(kStageAttr)})
    local->removeAttr(name);
  for (auto [result, sharding] : llvm::zip(local->getResults(), out))
    result.setType(localType(cast<RankedTensorType>(result.getType()), sharding, tp));
  if (dropBias)
    cast<llm::LinearOp>(local).getBiasesMutable().clear();
  if (auto embedding = dyn_cast<llm::EmbeddingOp>(local))
    adjust(embedding, in);
  else if (auto attention = dyn_cast<llm::AttentionOp>(local))
    adjust(attention, cast<llm::AttentionOp>(op), in);
  mapping.map(op.getResults(), local->getResults());
}

void RankWriter::writeCollective(Operation *op) {
  Value input = mapping.lookup(op->getOperand(0)), result = input;
  if (!alone()) {
    result =
        llvm::TypeSwitch<Operation *, Value>(op)
            .Case([&](AllReduceOp) {
              return builder.create<AllReduceOp>(op->getLoc(), input, groupAttr(), seqAttr()).getResult();
            })
            .Case([&](AllGatherOp gather) {
              return builder
                  .create<AllGatherOp>(op->getLoc(), gather.getType(), input, gather.getTiles(), groupAttr(),
                                       seqAttr())
                  .getResult();
            })
            .Case([&](GatherOp gather) {
              Type type =
                  tp == static_cast<int64_t>(gather.getRoot()) ? gather.getResult().getType() : Type();
              return builder
                  .create<GatherOp>(op->getLoc(), type, input, gather.getTiles(), gather.getRootAttr(),
                                    groupAttr(), seqAttr())
                  .getResult();
            })
            .Case([&](SliceOp slice) {
              auto type = localType(cast<RankedTensorType>(slice.getType()), slice.getTiles(), tp);
              return builder.create<SliceOp>(op->getLoc(), type, input, slice.getTiles()).getResult();
            });
    if (result)
      llm::setLayer(result.getDefiningOp(), llm::getLayer(op));
  }
  mapping.map(op->getResult(0), result);
}

void RankWriter::writeTransfer(TransferOp op) {
  if (static_cast<int64_t>(op.getFrom()) == stage) {
    int64_t peer = mesh.rank(op.getTo(), tp);
    auto send =
        builder.create<SendOp>(op.getLoc(), mapping.lookup(op.getInput()), builder.getI64IntegerAttr(peer),
                               builder.getI64IntegerAttr(sendSeq[peer]++));
    llm::setLayer(send, llm::getLayer(op));
  } else if (static_cast<int64_t>(op.getTo()) == stage) {
    int64_t peer = mesh.rank(op.getFrom(), tp);
    auto recv = builder.create<RecvOp>(op.getLoc(), op.getType(), builder.getI64IntegerAttr(peer),
                                       builder.getI64IntegerAttr(recvSeq[peer]++));
    llm::setLayer(recv, llm::getLayer(op));
    mapping.map(op.getResult(), recv.getResult());
  }
}

// Only the rank that ends with the logits returns them.
void RankWriter::writeReturn(func::ReturnOp op) {
  SmallVector<Value> values;
  if (stage == mesh.getPp() - 1 && tp == 0)
    for (Value operand : op.getOperands())
      values.push_back(mapping.lookup(operand));
  builder.create<func::ReturnOp>(op.getLoc(), values);
}

void RankWriter::writeOp(Operation &op) {
  if (isa<llm::WeightOp>(op))
    return;
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return writeReturn(ret);
  if (auto transfer = dyn_cast<TransferOp>(op))
    return writeTransfer(transfer);
  if (op.getAttrOfType<IntegerAttr>(kStageAttr).getInt() != stage)
    return;
  if (isa<AllReduceOp, AllGatherOp, GatherOp, SliceOp>(op))
    return writeCollective(&op);
  writeCompute(op);
}

func::FuncOp RankWriter::write() {
  int64_t rank = mesh.rank(stage, tp);
  builder.setInsertionPoint(forward);
  FunctionType type = forward.getFunctionType();
  bool output = stage == mesh.getPp() - 1 && tp == 0;
  auto program = builder.create<func::FuncOp>(
      forward.getLoc(), ("rank" + Twine(rank)).str(),
      builder.getFunctionType(type.getInputs(), output ? type.getResults() : TypeRange()));
  program->setAttr(kRankAttr, builder.getI64IntegerAttr(rank));
  program->setAttr(kStageAttr, builder.getI64IntegerAttr(stage));
  program->setAttr(kTpIndexAttr, builder.getI64IntegerAttr(tp));
  Block *entry = program.addEntryBlock();
  mapping.map(forward.getArguments(), entry->getArguments());
  builder.setInsertionPointToEnd(entry);
  for (Operation &op : forward.getBody().front())
    writeOp(op);
  return program;
}

// Every op has a stage of the mesh, and reads values of that stage alone: what comes from another comes by a
// transfer.
static LogicalResult checkStages(func::FuncOp forward, MeshAttr mesh, SharedState &shared) {
  llvm::DenseMap<Value, int64_t> stages; // where a value is at hand
  for (Operation &op : forward.getBody().front()) {
    auto transfer = dyn_cast<TransferOp>(op);
    auto attr = op.getAttrOfType<IntegerAttr>(kStageAttr);
    if (isa<llm::WeightOp>(op))
      continue;
    if (!transfer && !attr && !isa<func::ReturnOp>(op))
      return op.emitError() << "has no " << kStageAttr << ": run dist-split-stages first";
    int64_t here = transfer ? transfer.getFrom() : attr ? attr.getInt() : mesh.getPp() - 1;
    int64_t there = transfer ? transfer.getTo() : here;
    for (int64_t stage : {here, there})
      if (stage < 0 || stage >= mesh.getPp())
        return op.emitError() << "names stage " << stage << " of " << mesh.getPp();
    for (Value operand : op.getOperands()) {
      if (auto weight = operand.getDefiningOp<llm::WeightOp>())
        shared.firstStage.try_emplace(weight, here);
      else if (auto stage = stages.find(operand); stage != stages.end() && stage->second != here)
        return op.emitError() << "of stage " << here << " reads a value that is at hand on stage "
                              << stage->second << ": run dist-split-stages first";
    }
    for (Value result : op.getResults())
      stages[result] = there;
  }
  return success();
}

namespace {
struct LocalizePass : llmc::dist::impl::DistLocalizeBase<LocalizePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!mesh || !forward || forward.isDeclaration()) {
      module.emitError() << "needs " << kMeshAttr << " and @forward";
      return signalPassFailure();
    }
    SharedState shared;
    if (failed(checkShardings(forward, mesh.getTp())) || failed(checkStages(forward, mesh, shared)))
      return signalPassFailure();
    for (int64_t stage = 0; stage < mesh.getPp(); ++stage)
      for (int64_t tp = 0; tp < mesh.getTp(); ++tp)
        RankWriter(forward, mesh, stage, tp, shared).write();
    forward.erase();
  }
};
} // namespace
