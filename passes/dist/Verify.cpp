// dist-verify: closes the dist phase. A rank's function is right by itself if its ops verify; this pass
// checks what holds between ranks, so that a mistake in splitting is found here and not as a hang.
#include "passes/dist/Passes.h"

#include "llvm/ADT/StringMap.h"

#include <map>

namespace llmc::dist {
#define GEN_PASS_DEF_DISTVERIFY
#include "passes/dist/Passes.h.inc"
} // namespace llmc::dist

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

namespace {
class Verifier {
public:
  explicit Verifier(ModuleOp module) : module(module) {}

  LogicalResult run() {
    if (failed(collectRanks()) || failed(checkCollectives()) || failed(checkTransfers()) ||
        failed(checkWeights()))
      return failure();
    return checkOutput();
  }

private:
  ModuleOp module;
  SmallVector<func::FuncOp> ranks;

  LogicalResult collectRanks();
  LogicalResult checkCollectives();
  LogicalResult checkTransfers();
  LogicalResult checkWeights();
  LogicalResult checkOutput();
};
} // namespace

LogicalResult Verifier::collectRanks() {
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  if (!mesh)
    return module.emitError() << "has no " << kMeshAttr;
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    auto program = module.lookupSymbol<func::FuncOp>(("rank" + Twine(rank)).str());
    auto number = program ? program->getAttrOfType<IntegerAttr>(kRankAttr) : IntegerAttr();
    if (!number || number.getInt() != rank || program.isDeclaration())
      return module.emitError() << "a mesh of " << mesh.numRanks() << " ranks needs @rank" << rank << " with "
                                << kRankAttr << " = " << rank;
    ranks.push_back(program);
  }
  return success();
}

// Members of a group must meet the same ops in the same order over the same whole widths.
LogicalResult Verifier::checkCollectives() {
  struct Step {
    Operation *op;
    std::string what;
  };
  std::map<std::vector<int64_t>, std::map<int64_t, std::vector<Step>>> groups;
  for (auto [rank, program] : llvm::enumerate(ranks)) {
    for (Operation &op : program.getBody().front()) {
      if (!isa<AllReduceOp, AllGatherOp, GatherOp>(op))
        continue;
      auto group = op.getAttrOfType<DenseI64ArrayAttr>("group");
      auto seq = op.getAttrOfType<IntegerAttr>("seq");
      if (!group || !seq)
        return op.emitError() << "has no group or no sequence number";
      for (int64_t member : group.asArrayRef())
        if (member < 0 || member >= static_cast<int64_t>(ranks.size()))
          return op.emitError() << "has rank " << member << " in its group, but there are " << ranks.size()
                                << " ranks";
      if (!llvm::is_contained(group.asArrayRef(), static_cast<int64_t>(rank)))
        return op.emitError() << "rank " << rank << " is not in its group";
      std::string what;
      llvm::raw_string_ostream os(what);
      os << op.getName() << " #" << seq.getInt() << " ";
      if (auto tiles = op.getAttrOfType<TilesAttr>("tiles"))
        os << tiles << " " << cast<RankedTensorType>(op.getOperand(0).getType()).getElementType();
      else
        os << op.getOperand(0).getType();
      groups[group.asArrayRef().vec()][rank].push_back({&op, what});
    }
  }
  for (auto &[members, steps] : groups) {
    const std::vector<Step> &reference = steps[members[0]];
    for (int64_t member : members) {
      const std::vector<Step> &mine = steps[member];
      for (size_t i = 0; i < std::max(mine.size(), reference.size()); ++i) {
        if (i < mine.size() && i < reference.size() && mine[i].what == reference[i].what)
          continue;
        Operation *at = i < mine.size() ? mine[i].op : ranks[member].getOperation();
        return at->emitError() << "rank " << member << " meets "
                               << (i < mine.size() ? mine[i].what : "no collective") << " where rank "
                               << members[0] << " meets "
                               << (i < reference.size() ? reference[i].what : "none");
      }
    }
  }
  return success();
}

LogicalResult Verifier::checkTransfers() {
  std::map<std::tuple<int64_t, int64_t, int64_t>, Operation *> sends, recvs; // (from, to, seq)
  for (auto [rank, program] : llvm::enumerate(ranks)) {
    for (Operation &op : program.getBody().front()) {
      int64_t self = rank;
      bool fresh = true;
      if (auto send = dyn_cast<SendOp>(op))
        fresh = sends.try_emplace({self, send.getPeer(), send.getSeq()}, &op).second;
      else if (auto recv = dyn_cast<RecvOp>(op))
        fresh = recvs.try_emplace({recv.getPeer(), self, recv.getSeq()}, &op).second;
      if (!fresh)
        return op.emitError() << "repeats a sequence number";
    }
  }
  for (auto &[key, send] : sends) {
    auto recv = recvs.find(key);
    if (recv == recvs.end())
      return send->emitError() << "is never received by rank " << std::get<1>(key);
    if (recv->second->getResult(0).getType() != send->getOperand(0).getType())
      return send->emitError() << "sends " << send->getOperand(0).getType() << " but rank "
                               << std::get<1>(key) << " receives " << recv->second->getResult(0).getType();
  }
  for (auto &[key, recv] : recvs)
    if (!sends.count(key))
      return recv->emitError() << "waits for rank " << std::get<0>(key) << ", which never sends";
  return success();
}

// The first holders' boxes of a tensor have as many elements as the tensor. (That they do not overlap is
// proven on the plan, box by box.)
LogicalResult Verifier::checkWeights() {
  llvm::StringMap<std::pair<llm::WeightOp, int64_t>> held;
  for (func::FuncOp program : ranks) {
    for (auto weight : program.getBody().getOps<llm::WeightOp>()) {
      if (!weight.getBoxes() || !weight.getTensorAttr())
        return weight.emitError() << "has no boxes or no tensor";
      auto &entry = held.try_emplace(weight.getName(), weight, 0).first->second;
      for (llm::BoxAttr box : weight.getBoxes()->getAsRange<llm::BoxAttr>())
        if (!box.getReplica())
          entry.second += box.getRows() * box.getCols();
    }
  }
  for (auto &entry : held) {
    auto [weight, elements] = entry.second;
    int64_t all = 1;
    for (int64_t size : weight.getTensorAttr().getShape())
      all *= size;
    if (elements != all)
      return weight.emitError() << "'" << weight.getName() << "' has " << all
                                << " elements, but its first holders have " << elements;
  }
  return success();
}

LogicalResult Verifier::checkOutput() {
  int64_t outputs =
      llvm::count_if(ranks, [](func::FuncOp f) { return f.getFunctionType().getNumResults() != 0; });
  if (outputs != 1)
    return module.emitError() << outputs << " ranks return logits, one must";
  return success();
}

namespace {
struct VerifyPass : llmc::dist::impl::DistVerifyBase<VerifyPass> {
  void runOnOperation() override {
    if (failed(Verifier(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
