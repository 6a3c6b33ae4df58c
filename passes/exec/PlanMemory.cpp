// exec-plan-memory: gives every weight and every buffer its place, so that the runtime allocates three regions a rank
// and nothing else, and so that what a rank needs is known before it starts.
#include "passes/analysis/Liveness.h"
#include "passes/exec/Passes.h"
#include "passes/exec/Workspace.h"

#include "llvm/ADT/DenseMap.h"

namespace llmc::exec {
#define GEN_PASS_DEF_EXECPLANMEMORY
#include "passes/exec/Passes.h.inc"
} // namespace llmc::exec

using namespace mlir;
using namespace llmc;
using namespace llmc::exec;

// Offsets of weights and buffers are multiples of this: a cache line on CPUs, a full memory transaction on GPUs.
static constexpr uint64_t kAlignment = 256;

static uint64_t placeWeights(ProgramOp program) {
  Builder builder(program.getContext());
  uint64_t offset = 0;
  for (auto weight : program.getBody().getOps<WeightOp>()) {
    weight.setOffset(static_cast<int64_t>(offset));
    offset += weight.getResult().getType().getBytes();
    offset = (offset + kAlignment - 1) / kAlignment * kAlignment;
  }
  return offset;
}

// The gate behind a product, where steps of some rows run the two as one launch.
static GatedActOp gateOf(LinearOp linear) {
  if (linear.getWideRows() == 0 && linear.getFusedRows() == 0 && linear.getPairedRows() == 0)
    return {};
  auto gate = dyn_cast_or_null<GatedActOp>(nextExecuted(linear));
  return gate && resolveView(gate.getGate()).first == resolveView(linear.getOut()).first ? gate : GatedActOp();
}

// Lifetimes over the program's executed ops, then offsets. Where a product and its gate may be one launch, that reads the
// product's input while it writes the gate's result: the two have places of their own.
static LogicalResult placeBuffers(ProgramOp program, dist::LimitsAttr limits, uint64_t &arena) {
  SmallVector<BufferOp> buffers;
  SmallVector<LiveRange> ranges;
  llvm::DenseMap<Operation *, size_t> indices;
  int64_t op = 0;
  for (Operation &o : program.getBody().front()) {
    if (auto buffer = dyn_cast<BufferOp>(o)) {
      indices[buffer] = buffers.size();
      buffers.push_back(buffer);
      ranges.push_back({-1, -1, bufferBytes(buffer.getResult().getType(), limits)});
      continue;
    }
    bool output = isa<OutputOp>(o);
    if (!isExecuted(&o) && !output)
      continue;
    int64_t at = output ? op - 1 : op++; // the logits are read behind the last op
    for (Value operand : o.getOperands()) {
      if (!isa<BufferType>(operand.getType()))
        continue;
      LiveRange &range = ranges[indices[resolveView(operand).first]];
      if (range.firstOp < 0)
        range.firstOp = at;
      range.lastOp = at;
    }
    if (auto linear = dyn_cast<LinearOp>(o); linear && gateOf(linear)) {
      LiveRange &input = ranges[indices[resolveView(linear.getInput()).first]];
      input.lastOp = at + 1;
    }
  }
  for (auto [buffer, range] : llvm::zip(buffers, ranges))
    if (range.firstOp < 0)
      return buffer.emitError() << "is touched by no op";
  arena = planArena(ranges, kAlignment);
  for (auto [buffer, range] : llvm::zip(buffers, ranges)) {
    buffer.setOffset(static_cast<int64_t>(range.offset));
    buffer.setFirstOp(range.firstOp);
    buffer.setLastOp(range.lastOp);
  }
  return success();
}

namespace {
struct PlanMemoryPass : llmc::exec::impl::ExecPlanMemoryBase<PlanMemoryPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto topology = module->getAttrOfType<dist::TopologyAttr>(dist::kTopologyAttr);
    auto limits = module->getAttrOfType<dist::LimitsAttr>(dist::kLimitsAttr);
    auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
    if (!topology || !limits) {
      module.emitError() << "needs " << dist::kTopologyAttr << " and " << dist::kLimitsAttr;
      return signalPassFailure();
    }
    llvm::DenseMap<int64_t, int64_t> ranksOnHost;
    for (auto program : module.getOps<ProgramOp>())
      ++ranksOnHost[topology.getDevices()[program.getDevice()].getHost()];
    for (auto program : module.getOps<ProgramOp>()) {
      uint64_t arena = 0;
      program.setWeightBytes(static_cast<int64_t>(placeWeights(program)));
      if (failed(placeBuffers(program, limits, arena)))
        return signalPassFailure();
      dist::DeviceAttr device = topology.getDevices()[program.getDevice()];
      program.setArenaBytes(static_cast<int64_t>(arena));
      int64_t onHost = ranksOnHost[device.getHost()], stages = mesh ? mesh.getPp() : 1;
      program.setWorkspaceBytes(static_cast<int64_t>(workspaceBytes(program, limits, device.getKind(), onHost)));
      auto reaches = [&](int64_t peer) {
        int64_t here = program.getDevice(), there = mesh ? mesh.getDevices()[peer] : here;
        dist::LinkAttr link = topology.findLink(here, there);
        return here == there || (link && link.getP2p());
      };
      program.setCommBytes(static_cast<int64_t>(communicationBytes(program, limits, device.getKind(), stages, reaches)));
    }
  }
};
} // namespace
