// exec-select-kernels: which kernel runs an op depends on its shapes and on the device alone, both known here; the
// runtime only looks the name up.
#include "passes/exec/KernelScratch.h"
#include "passes/exec/Passes.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

namespace llmc::exec {
#define GEN_PASS_DEF_EXECSELECTKERNELS
#include "passes/exec/Passes.h.inc"
} // namespace llmc::exec

using namespace mlir;
using namespace llmc;
using namespace llmc::exec;

namespace {
class Selector {
public:
  Selector(ProgramOp program, dist::TopologyAttr topology, dist::MeshAttr mesh, bool keepQuantized)
      : program(program), topology(topology), mesh(mesh), keepQuantized(keepQuantized), builder(program.getContext()),
        kind(topology.getDevices()[program.getDevice()].getKind()) {}

  LogicalResult run() {
    for (Operation &op : program.getBody().front()) {
      if (kind == "cuda" && failed(checkCuda(&op)))
        return failure();
      if (auto weight = dyn_cast<WeightOp>(op))
        chooseLayout(weight);
      else if (isExecuted(&op))
        chooseKernel(&op);
    }
    return success();
  }

private:
  ProgramOp program;
  dist::TopologyAttr topology;
  dist::MeshAttr mesh;
  bool keepQuantized;
  Builder builder;
  StringRef kind;

  bool onCpu(int64_t rank) const { return topology.getDevices()[mesh.getDevices()[rank]].getKind() == "cpu"; }
  LogicalResult checkCuda(Operation *op);
  void chooseLayout(WeightOp weight);
  void chooseKernel(Operation *op);
  void chooseProduct(LinearOp op);
  void chooseCommunicator(Operation *op);
  void chooseShots(AllReduceOp op);
};
} // namespace

static LogicalResult atMost(Operation *op, const Twine &what, int64_t value, int64_t most, const char *remedy) {
  return value <= most ? success()
                       : op->emitError() << what << " " << value << " is more than the " << most << " that the CUDA kernels take: " << remedy;
}

// Shapes that CPUs take and GPUs do not, said before anyone carries the plan to one.
LogicalResult Selector::checkCuda(Operation *op) {
  constexpr const char *remedy = "compile for CPU devices";
  if (auto attention = dyn_cast<AttentionOp>(op))
    return atMost(op, "head dimension", attention.getHeadDim(), kCudaMostHeadDim, remedy);
  if (isa<RmsNormOp, AddRmsNormOp>(op))
    return atMost(op, "hidden size", cast<BufferType>(op->getOperand(0).getType()).getCols(), kCudaMostResidual, remedy);
  return success();
}

// The block format that all parts of a weight have, in whole blocks, where a kernel multiplies it as it is.
static QuantType commonFormat(WeightOp weight) {
  std::optional<QuantFormat> common;
  for (auto part : weight.getParts().getAsRange<PartAttr>()) {
    StringRef dtype = part.getTensor().getDtype();
    auto format = llvm::StringSwitch<std::optional<QuantFormat>>(dtype)
                      .Case("q8_0", QuantFormat::Q8_0)
                      .Cases("q4_1", "q4_0", QuantFormat::Q4_1)
                      .Default(std::nullopt);
    llm::BoxAttr box = part.getBox();
    if (!format || (common && common != format) || box.getCol() % QuantType::kBlock || box.getCols() % QuantType::kBlock ||
        part.getDstCol() % QuantType::kBlock)
      return {};
    common = format;
  }
  return common ? QuantType::get(weight.getContext(), *common) : QuantType();
}

// Matrices that a CPU multiplies with lie in panels of 16 rows, so that 16 outputs fill a vector register whatever the
// number of tokens. A table that is only looked up stays as it is.
void Selector::chooseLayout(WeightOp weight) {
  WeightType type = weight.getResult().getType();
  bool multiplied = llvm::any_of(weight->getUses(), [](OpOperand &use) {
    auto linear = dyn_cast<LinearOp>(use.getOwner());
    return linear && linear.getWeight() == use.get();
  });
  if (kind != "cpu" || !multiplied)
    return;
  Type element = type.getElement();
  if (QuantType quant = keepQuantized ? commonFormat(weight) : QuantType())
    element = quant;
  weight.getResult().setType(WeightType::get(type.getContext(), type.getRows(), type.getCols(), element, Layout::Packed16));
}

void Selector::chooseKernel(Operation *op) {
  // "exec.add_rms_norm" on a CPU is "cpu.add_rms_norm"; kernels that depend on a weight's layout say which they want.
  std::string kernel = (kind + "." + op->getName().stripDialect()).str();
  WeightType weight = llvm::TypeSwitch<Operation *, WeightType>(op)
                          .Case([](LinearOp linear) { return linear.getWeight().getType(); })
                          .Case([](EmbeddingOp embedding) { return embedding.getTable().getType(); })
                          .Default(WeightType());
  if (weight && kind == "cpu")
    (kernel += '.') += stringifyLayout(weight.getLayout());
  op->setAttr("kernel", builder.getStringAttr(kernel));
  if (auto linear = dyn_cast<LinearOp>(op); linear && kind == "cuda")
    chooseProduct(linear);
  if (isa<AllReduceOp, AllGatherOp, GatherOp, SendOp, RecvOp>(op))
    chooseCommunicator(op);
}

// Whether the op behind adds the product to a residual.
static bool isAdded(LinearOp op) {
  Operation *next = nextExecuted(op);
  return next && isa<AddOp, AddRmsNormOp>(next) && llvm::is_contained(next->getOperands(), op.getOut());
}

// Whether the two halves of the product are multiplied behind it.
static bool isGated(LinearOp op) {
  auto gate = dyn_cast_or_null<GatedActOp>(nextExecuted(op));
  return gate && resolveView(gate.getGate()).first == resolveView(op.getOut()).first;
}

// Whether the product's columns are rotated behind it.
static bool isRotated(LinearOp op) {
  auto rope = dyn_cast_or_null<RopeOp>(nextExecuted(op));
  return rope && resolveView(rope.getQ()).first == resolveView(op.getOut()).first;
}

// From the sweeps of bench_cuda_kernels on an H200 (docs/kernels.md): of few rows, reading the weight is all there is. A
// large weight of 16-bit elements is cut evenly over Hopper's multiprocessors for some rows more. From some 8 million elements on that is
// faster than the library's product up to 64 rows, and up to 128 in a step, where ours starts before the kernel in front has ended; and from
// five rows on for weights of which the kernel for few rows has a second round with little in it (5,120 rows, as in 14B and 32B: 34.9 us
// instead of 42.1 for down of 16 rows). What stands next to a product
// makes each of its blocks longer and saves launches, which pays where the residual is narrow and its rows are few: at 576
// columns a layer of one row takes 16.9 us instead of 18.9, but of eight rows 21.1 instead of 19.1. A gate or a rotation alone is worth
// it with large weights from four rows on: a layer of eight takes 126.0 us instead of 127.4 (7B), 72.0 instead of 73.5 (half of one). In
// f32 no number of rows is the library's, whose order of summation depends on it.
void Selector::chooseProduct(LinearOp op) {
  constexpr int64_t kWideElements = 8'000'000, kPairedElements = 8 << 20, kFusedRows = 4, kNarrow = 1024;
  constexpr int64_t kOneRound = 132 * 32, kNarrowestStreamed = 5120, kFewestWide = 4; // weight rows of a round on an H100 or H200
  WeightType weight = op.getWeight().getType();
  Type out = op.getOut().getType().getElement();
  int64_t capability = topology.getDevices()[program.getDevice()].getCapability();
  bool hopper = capability >= 90 && capability < 100;
  bool halves = out == weight.getElement() && out.isIntOrFloat() && out.getIntOrFloatBitWidth() == 16;
  op.setStreamRows(out.isF32() && weight.getElement().isF32() ? kCudaAllRows : kCudaStreamRows);
  if ((isAdded(op) ? weight.getRows() : weight.getCols()) <= kNarrow)
    op.setFusedRows(kFusedRows);
  else if (hopper && halves && weight.getRows() * weight.getCols() >= kPairedElements && (isGated(op) || isRotated(op)))
    op.setPairedRows(kCudaStreamRows);
  if (hopper && halves && weight.getRows() * weight.getCols() >= kWideElements && weight.getRows() % 8 == 0 &&
      weight.getCols() % 8 == 0) {
    op.setWideRows(isGated(op) ? kCudaAllRows : kCudaWideRows); // of many rows, the gate is worth a product of our own
    if (weight.getRows() > kOneRound && weight.getRows() <= kOneRound * 3 / 2 && weight.getCols() >= kNarrowestStreamed)
      op.setStreamRows(kFewestWide);
  }
}

// GPUs talk through NCCL. Where a CPU takes part, shared memory carries the data and sums go in rank order.
void Selector::chooseCommunicator(Operation *op) {
  bool host = kind == "cpu";
  if (auto group = op->getAttrOfType<DenseI64ArrayAttr>("group"))
    host |= llvm::any_of(group.asArrayRef(), [&](int64_t rank) { return onCpu(rank); });
  else if (auto peer = op->getAttrOfType<IntegerAttr>("peer"))
    host |= onCpu(peer.getInt());
  op->setAttr("comm", CommAttr::get(op->getContext(), host ? Comm::Host : Comm::Nccl));
  if (op->hasAttr("group"))
    op->setAttr("algorithm", AlgorithmAttr::get(op->getContext(), host ? Algorithm::Ordered : Algorithm::Ring));
  if (auto reduce = dyn_cast<AllReduceOp>(op); reduce && !host)
    chooseShots(reduce);
}

// Which sums kernels push, and how. In one shot a member sends n - 1 messages; in two, as in a ring, 2 (n - 1) / n of one, for one more
// hop between members. Between two members that is the same, and one shot serves every size; among more, two shots are not pipelined,
// and what is large goes by NCCL's ring.
void Selector::chooseShots(AllReduceOp op) {
  constexpr int64_t kEverySize = 4ll << 30, kTwoShots = 8 << 20, kChunk = 16; // docs/kernels.md
  constexpr double kSignal = 1.3e-6; // seconds of a hop beside the link's latency: two shots less one, 3.3 us over a link of 2 us
  ArrayRef<int64_t> ranks = op.getGroup();
  BufferType type = op.getData().getType();
  int64_t row = type.getCols() * (type.getElement().getIntOrFloatBitWidth() / 8);
  if (row % kChunk != 0 || row > kCudaOneShotRow || ranks.size() > kCudaOneShotRanks)
    return;
  double bandwidth = std::numeric_limits<double>::infinity(), latency = 0; // of the slowest link
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      int64_t a = mesh.getDevices()[ranks[i]], b = mesh.getDevices()[ranks[j]];
      dist::LinkAttr link = topology.findLink(a, b);
      if (a == b || !link || !link.getP2p() || topology.getDevices()[a].getHost() != topology.getDevices()[b].getHost())
        return;
      bandwidth = std::min(bandwidth, link.getBandwidth().getValueAsDouble());
      latency = std::max(latency, link.getLatency().getValueAsDouble());
    }
  double n = static_cast<double>(ranks.size()), extra = (n - 1) - 2 * (n - 1) / n; // messages that one shot sends beyond two
  auto inRows = [&](int64_t bytes) { return bytes / row * row; };
  op.setOneShotBytes(inRows(extra > 0 ? std::min(kTwoShots, static_cast<int64_t>((latency + kSignal) * bandwidth / extra)) : kEverySize));
  if (extra > 0)
    op.setTwoShotBytes(inRows(kTwoShots));
}

namespace {
struct SelectKernelsPass : llmc::exec::impl::ExecSelectKernelsBase<SelectKernelsPass> {
  using ExecSelectKernelsBase::ExecSelectKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto topology = module->getAttrOfType<dist::TopologyAttr>(dist::kTopologyAttr);
    auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
    if (!topology || !mesh) {
      module.emitError() << "needs " << dist::kTopologyAttr << " and " << dist::kMeshAttr;
      return signalPassFailure();
    }
    auto limits = module->getAttrOfType<dist::LimitsAttr>(dist::kLimitsAttr);
    bool cuda = llvm::any_of(mesh.getDevices(), [&](int64_t device) { return topology.getDevices()[device].getKind() == "cuda"; });
    if (cuda && limits && failed(atMost(module, "--max-batched-tokens", limits.getMaxBatchedTokens(), kCudaMostTokens, "lower it")))
      return signalPassFailure();
    for (auto program : module.getOps<ProgramOp>())
      if (failed(Selector(program, topology, mesh, keepQuantized).run()))
        return signalPassFailure();
  }
};
} // namespace
