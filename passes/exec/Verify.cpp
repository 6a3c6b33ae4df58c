// exec-verify: closes the exec phase, so that the emitter may rely on every attribute being there and in range.
#include "passes/exec/Passes.h"
#include "passes/exec/Workspace.h"

#include <algorithm>

namespace llmc::exec {
#define GEN_PASS_DEF_EXECVERIFY
#include "passes/exec/Passes.h.inc"
} // namespace llmc::exec

using namespace mlir;
using namespace llmc;
using namespace llmc::exec;

static LogicalResult checkOps(ProgramOp program) {
  for (Operation &op : program.getBody().front()) {
    if (isExecuted(&op) && !op.hasAttr("kernel"))
      return op.emitError() << "has no kernel: run exec-select-kernels";
    if (isa<AllReduceOp, AllGatherOp, GatherOp, SendOp, RecvOp>(op) && !op.hasAttr("comm"))
      return op.emitError() << "has no communicator: run exec-select-kernels";
  }
  return success();
}

static LogicalResult checkWeights(ProgramOp program) {
  uint64_t end = 0;
  for (auto weight : program.getBody().getOps<WeightOp>()) {
    uint64_t bytes = weight.getResult().getType().getBytes();
    if (!weight.getOffset() || *weight.getOffset() < end)
      return weight.emitError() << "has no offset behind " << end << ", where the weight before it ends";
    end = *weight.getOffset() + bytes;
    if (end > *program.getWeightBytes())
      return weight.emitError() << "ends at " << end << ", past the weight region of " << *program.getWeightBytes();
  }
  return success();
}

// Sweeps over the ops: at each, the buffers that live must not share a byte.
static LogicalResult checkBuffers(ProgramOp program, dist::LimitsAttr limits) {
  struct Placed {
    BufferOp op;
    uint64_t begin, end;
  };
  SmallVector<Placed> placed;
  for (auto buffer : program.getBody().getOps<BufferOp>()) {
    if (!buffer.getOffset() || !buffer.getFirstOp() || !buffer.getLastOp())
      return buffer.emitError() << "has no place in the arena: run exec-plan-memory";
    uint64_t begin = *buffer.getOffset(), end = begin + bufferBytes(buffer.getResult().getType(), limits);
    if (end > *program.getArenaBytes())
      return buffer.emitError() << "ends at " << end << ", past the arena of " << *program.getArenaBytes();
    placed.push_back({buffer, begin, end});
  }
  llvm::stable_sort(placed, [](Placed a, Placed b) { return *a.op.getFirstOp() < *b.op.getFirstOp(); });
  SmallVector<Placed> living;
  for (Placed &next : placed) {
    llvm::erase_if(living, [&](Placed &p) { return *p.op.getLastOp() < *next.op.getFirstOp(); });
    for (Placed &p : living)
      if (p.begin < next.end && next.begin < p.end)
        return next.op.emitError() << "shares bytes [" << std::max(p.begin, next.begin) << ", "
                                   << std::min(p.end, next.end) << ") with '" << p.op.getName()
                                   << "', which lives at the same time";
    living.push_back(next);
  }
  return success();
}

static LogicalResult checkLedger(ProgramOp program) {
  auto bytes = [&](StringRef name) -> uint64_t {
    auto attr = program.getLedger()->getAs<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  uint64_t sum = 0;
  for (StringRef name : {"weights", "activations", "workspace", "communication", "runtime", "kv_cache"})
    sum += bytes(name);
  if (sum != bytes("total"))
    return program.emitError() << "has a ledger whose lines sum to " << sum << ", not to its total of "
                               << bytes("total");
  if (sum > bytes("budget"))
    return program.emitError() << "needs " << sum << " bytes of a budget of " << bytes("budget");
  return success();
}

namespace {
struct VerifyPass : llmc::exec::impl::ExecVerifyBase<VerifyPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto limits = module->getAttrOfType<dist::LimitsAttr>(dist::kLimitsAttr);
    if (!limits || !module->hasAttr(kNumPagesAttr)) {
      module.emitError() << "needs " << dist::kLimitsAttr << " and " << kNumPagesAttr;
      return signalPassFailure();
    }
    for (auto program : module.getOps<ProgramOp>()) {
      if (!program.getWeightBytes() || !program.getArenaBytes() || !program.getKv() || !program.getLedger()) {
        program.emitError() << "has no planned memory: run exec-plan-memory and exec-plan-kv-pages";
        return signalPassFailure();
      }
      if (failed(checkOps(program)) || failed(checkWeights(program)) || failed(checkBuffers(program, limits)) ||
          failed(checkLedger(program)))
        return signalPassFailure();
    }
  }
};
} // namespace
