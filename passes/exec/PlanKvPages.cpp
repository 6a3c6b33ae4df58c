// exec-plan-kv-pages: what weights, activations and scratch leave of each device's budget becomes KV pages. Whether the
// context that was asked for fits is known here, on the machine that compiles, with the numbers and the way out.
#include "passes/exec/Passes.h"
#include "passes/exec/Workspace.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Format.h"

#include <algorithm>

namespace llmc::exec {
#define GEN_PASS_DEF_EXECPLANKVPAGES
#include "passes/exec/Passes.h.inc"
} // namespace llmc::exec

using namespace mlir;
using namespace llmc;
using namespace llmc::exec;

static std::string sized(double bytes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (std::abs(bytes) >= 1 << 30)
    os << llvm::format("%.2f GiB", bytes / (1 << 30));
  else if (std::abs(bytes) >= 1 << 20)
    os << llvm::format("%.1f MiB", bytes / (1 << 20));
  else
    os << llvm::format("%.1f KiB", bytes / (1 << 10));
  return text;
}

// The rank's layers and heads, from its attention ops.
static KvAttr kvOf(ProgramOp program, ArrayRef<int64_t> heads, int64_t duplicated, dist::LimitsAttr limits) {
  SmallVector<int64_t> layers;
  int64_t kvHeads = 0, headDim = 0;
  for (auto attention : program.getBody().getOps<AttentionOp>()) {
    layers.push_back(attention.getLayer());
    kvHeads = attention.getKvHeads();
    headDim = attention.getHeadDim();
  }
  int64_t element = limits.getKvDtype().getIntOrFloatBitWidth() / 8;
  return KvAttr::get(program.getContext(), layers, heads, headDim, limits.getKvDtype(),
                     2 * kvHeads * limits.getPageSize() * headDim * element, duplicated);
}

// Model-wide KV heads of the rank: the rows of k that its weights hold, in units of head_dim. The k rows stand behind
// the q rows in the stacked weight; heads whose rows are replicas are held by a lower rank too.
static LogicalResult findHeads(ProgramOp program, SmallVectorImpl<int64_t> &heads, int64_t &duplicated) {
  AttentionOp attention = *program.getBody().getOps<AttentionOp>().begin();
  KvAppendOp append = *program.getBody().getOps<KvAppendOp>().begin();
  auto [buffer, begin] = resolveView(append.getK());
  LinearOp producer;
  for (auto linear : program.getBody().getOps<LinearOp>())
    if (resolveView(linear.getOut()).first == buffer) {
      producer = linear;
      break;
    }
  if (!producer)
    return append.emitError() << "takes keys that no linear computes";
  int64_t dim = attention.getHeadDim(), end = begin + append.getK().getType().getCols();
  auto weight = producer.getWeight().getDefiningOp<WeightOp>();
  for (auto part : weight.getParts().getAsRange<PartAttr>()) {
    if (part.getDstRow() < begin || part.getDstRow() >= end)
      continue;
    for (int64_t row = 0; row < part.getBox().getRows(); row += dim) {
      heads.push_back((part.getBox().getRow() + row) / dim);
      duplicated += part.getBox().getReplica();
    }
  }
  if (static_cast<int64_t>(heads.size()) != static_cast<int64_t>(attention.getKvHeads()))
    return append.emitError() << "has keys of " << heads.size() << " heads for attention over "
                              << attention.getKvHeads();
  return success();
}

namespace {
struct RankBudget {
  ProgramOp program;
  dist::DeviceAttr device;
  uint64_t budget = 0, fixed = 0, workspace = 0, pageBytes = 0;
  int64_t ranksOnHost = 1;
  int64_t pages() const { return budget < fixed ? 0 : static_cast<int64_t>((budget - fixed) / pageBytes); }
};

struct PlanKvPagesPass : llmc::exec::impl::ExecPlanKvPagesBase<PlanKvPagesPass> {
  using ExecPlanKvPagesBase::ExecPlanKvPagesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    topology = module->getAttrOfType<dist::TopologyAttr>(dist::kTopologyAttr);
    limits = module->getAttrOfType<dist::LimitsAttr>(dist::kLimitsAttr);
    if (!topology || !limits || module.getOps<ProgramOp>().empty()) {
      module.emitError() << "needs " << dist::kTopologyAttr << ", " << dist::kLimitsAttr << " and programs";
      return signalPassFailure();
    }
    if (failed(gather(module)))
      return signalPassFailure();
    int64_t longest = longestThatFits();
    if (longest < 1) {
      setLength(std::min(limits.getPageSize(), limits.getMaxModelLen()));
      reportNoRoom(tightest());
      return signalPassFailure();
    }
    if (longest < limits.getMaxModelLen()) {
      if (!shortenModelLen) {
        reportTooLong(tightest(), longest);
        return signalPassFailure();
      }
      shorten(module, longest);
    }
    // Page numbers are int32 in page tables.
    int64_t pages = std::min<int64_t>(tightest().pages(), INT32_MAX), needed = pagesPerSequence(limits.getMaxModelLen());
    // On CPUs more pages than all sequences can fill would only take memory from others.
    if (llvm::all_of(ranks, [](const RankBudget &r) { return r.device.getKind() == "cpu"; }))
      pages = std::min(pages, needed * limits.getMaxNumSeqs());
    module->setAttr(kNumPagesAttr, IntegerAttr::get(IntegerType::get(&getContext(), 64), pages));
    for (RankBudget &rank : ranks)
      writeLedger(rank, pages);
  }

private:
  dist::TopologyAttr topology;
  dist::LimitsAttr limits;
  SmallVector<RankBudget> ranks;

  int64_t pagesPerSequence(int64_t tokens) const {
    return (tokens + limits.getPageSize() - 1) / limits.getPageSize();
  }
  const RankBudget &tightest() const {
    return *llvm::min_element(ranks,
                              [](const RankBudget &a, const RankBudget &b) { return a.pages() < b.pages(); });
  }
  LogicalResult gather(ModuleOp module);
  RankBudget budgetAt(const RankBudget &rank, int64_t length) const;
  int64_t longestThatFits() const;
  void setLength(int64_t length);
  void reportNoRoom(const RankBudget &rank);
  void reportTooLong(const RankBudget &rank, int64_t longest);
  void shorten(ModuleOp module, int64_t longest);
  void writeLedger(RankBudget &rank, int64_t pages);
  std::string describe(const RankBudget &rank);
};
} // namespace

LogicalResult PlanKvPagesPass::gather(ModuleOp module) {
  ranks.clear();
  llvm::DenseMap<int64_t, int64_t> ranksOnHost;
  for (auto program : module.getOps<ProgramOp>())
    ++ranksOnHost[topology.getDevices()[program.getDevice()].getHost()];
  for (auto program : module.getOps<ProgramOp>()) {
    if (!program.getWeightBytes() || !program.getArenaBytes() || !program.getWorkspaceBytes() ||
        !program.getCommBytes())
      return program.emitError() << "has no planned memory: run exec-plan-memory first";
    if (program.getBody().getOps<AttentionOp>().empty() || program.getBody().getOps<KvAppendOp>().empty())
      return program.emitError() << "has no attention, so nothing to keep in KV pages";
    SmallVector<int64_t> heads;
    int64_t duplicated = 0;
    if (failed(findHeads(program, heads, duplicated)))
      return failure();
    KvAttr kv = kvOf(program, heads, duplicated, limits);
    program.setKvAttr(kv);
    dist::DeviceAttr device = topology.getDevices()[program.getDevice()];
    RankBudget rank{program, device};
    rank.budget = static_cast<uint64_t>(limits.getMemoryUtilization().getValueAsDouble() *
                                        static_cast<double>(device.getMemory()));
    rank.fixed = *program.getWeightBytes() + *program.getArenaBytes() + *program.getWorkspaceBytes() +
                 *program.getCommBytes() + device.getReserved();
    rank.workspace = *program.getWorkspaceBytes();
    rank.pageBytes = kv.getPageBytes();
    rank.ranksOnHost = ranksOnHost[device.getHost()];
    ranks.push_back(rank);
  }
  return success();
}

static dist::LimitsAttr withLength(dist::LimitsAttr limits, int64_t length) {
  return dist::LimitsAttr::get(limits.getContext(), length, limits.getMaxNumSeqs(), limits.getMaxBatchedTokens(),
                               limits.getMaxLogitsRows(), limits.getPageSize(), limits.getMemoryUtilization(),
                               limits.getKvDtype());
}

// The budget of a rank were sequences `length` tokens at most: the workspace (page tables, attention's partial results)
// was planned for longer ones, and the difference is there for pages.
RankBudget PlanKvPagesPass::budgetAt(const RankBudget &rank, int64_t length) const {
  if (length == limits.getMaxModelLen())
    return rank;
  StringRef kind = rank.device.getKind();
  uint64_t planned = workspaceBytes(rank.program, limits, kind, rank.ranksOnHost),
           shorter = workspaceBytes(rank.program, withLength(limits, length), kind, rank.ranksOnHost),
           saved = planned > shorter ? planned - shorter : 0;
  RankBudget result = rank;
  result.workspace = rank.workspace > saved ? rank.workspace - saved : 0;
  result.fixed = rank.fixed - rank.workspace + result.workspace;
  return result;
}

// The largest context of which every rank can hold one sequence, at most the one asked for; 0 where there is none.
int64_t PlanKvPagesPass::longestThatFits() const {
  auto fits = [&](int64_t length) {
    return llvm::all_of(
        ranks, [&](const RankBudget &r) { return budgetAt(r, length).pages() >= pagesPerSequence(length); });
  };
  if (fits(limits.getMaxModelLen()))
    return limits.getMaxModelLen();
  // Whole pages: `low` of them fit, `high` do not.
  int64_t low = 0, high = pagesPerSequence(limits.getMaxModelLen());
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (fits(middle * limits.getPageSize()) ? low : high) = middle;
  }
  return low * limits.getPageSize();
}

void PlanKvPagesPass::setLength(int64_t length) {
  for (RankBudget &rank : ranks) {
    rank = budgetAt(rank, length);
    rank.program.setWorkspaceBytes(rank.workspace);
  }
  limits = withLength(limits, length);
}

// "device gpu3 (rank 3, stage 1) has 21.60 GiB to use (0.9 of 24.00 GiB); weights take …"
std::string PlanKvPagesPass::describe(const RankBudget &rank) {
  ProgramOp program = rank.program;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "device " << rank.device.getId() << " (rank " << program.getRank() << ", stage " << program.getStage()
     << ") has " << sized(rank.budget) << " to use (" << llvm::format("%g", limits.getMemoryUtilization().getValueAsDouble())
     << " of " << sized(rank.device.getMemory()) << "); weights take " << sized(*program.getWeightBytes())
     << ", activations " << sized(*program.getArenaBytes()) << ", workspace and communication "
     << sized(*program.getWorkspaceBytes() + *program.getCommBytes()) << ", the runtime "
     << sized(rank.device.getReserved());
  return text;
}

void PlanKvPagesPass::reportNoRoom(const RankBudget &rank) {
  uint64_t needed = rank.fixed + rank.pageBytes;
  getOperation().emitError() << describe(rank) << ": " << sized(needed - rank.budget)
                             << " are missing before the first KV page of " << sized(rank.pageBytes)
                             << "; use more ranks (--tp, --pp), a smaller --max-batched-tokens or --max-num-seqs, or a "
                                "larger --memory-utilization";
}

void PlanKvPagesPass::reportTooLong(const RankBudget &rank, int64_t longest) {
  int64_t needed = pagesPerSequence(limits.getMaxModelLen());
  getOperation().emitError() << describe(rank) << ": what is left holds " << rank.pages() << " KV pages of "
                             << limits.getPageSize() << " tokens, but one sequence of " << limits.getMaxModelLen()
                             << " tokens needs " << needed << " (" << sized(static_cast<double>(needed) * rank.pageBytes)
                             << "); the largest that fits is --max-model-len " << longest
                             << ", or use more ranks or a larger --memory-utilization";
}

void PlanKvPagesPass::shorten(ModuleOp module, int64_t longest) {
  int64_t asked = limits.getMaxModelLen();
  setLength(longest);
  module->setAttr(dist::kLimitsAttr, limits);
  const RankBudget &rank = tightest();
  module.emitWarning() << "max_model_len is " << longest << ", not the model's " << asked << ": " << describe(rank)
                       << ", and what is left holds " << rank.pages() << " KV pages of " << limits.getPageSize()
                       << " tokens";
}

void PlanKvPagesPass::writeLedger(RankBudget &rank, int64_t pages) {
  Builder builder(&getContext());
  auto line = [&](StringRef name, uint64_t bytes) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(static_cast<int64_t>(bytes)));
  };
  uint64_t kv = static_cast<uint64_t>(pages) * rank.pageBytes;
  rank.program.setLedgerAttr(builder.getDictionaryAttr(
      {line("weights", *rank.program.getWeightBytes()), line("activations", *rank.program.getArenaBytes()),
       line("workspace", *rank.program.getWorkspaceBytes()), line("communication", *rank.program.getCommBytes()),
       line("runtime", rank.device.getReserved()), line("kv_cache", kv), line("total", rank.fixed + kv),
       line("budget", rank.budget), line("memory", rank.device.getMemory())}));
}
