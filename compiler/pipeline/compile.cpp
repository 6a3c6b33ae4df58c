#include "compiler/pipeline/compile.h"

#include "compiler/emit/emit_plan.h"
#include "compiler/import/build_ir.h"
#include "compiler/import/import.h"
#include "compiler/import/topology.h"
#include "compiler/import/words.h"
#include "compiler/pipeline/registration.h"
#include "compiler/pipeline/topology_attr.h"
#include "compiler/support/error.h"
#include "passes/dist/Passes.h"
#include "passes/dist/Placement.h"
#include "passes/exec/Passes.h"
#include "passes/llm/Passes.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

#include <algorithm>
#include <filesystem>

using namespace mlir;
using namespace llmc;

namespace {

// What the options leave open, settled by the model and the machine.
struct Settled {
  Type weightType, activationType, kvType;
  dist::LimitsAttr limits;
};

// The element type of matrices: as asked, or the checkpoint's own, quantised ones being widened to bf16. A GPU older than
// compute capability 8.0 has no bf16; there float16 takes its place, with a warning.
Type weightType(MLIRContext *context, const CompileOptions &options, const ModelSpec &spec, ArrayRef<dist::DeviceAttr> devices,
                std::vector<std::string> &warnings) {
  std::string dtype = options.dtype;
  if (dtype == "auto")
    dtype = spec.storedDtype == DType::F32 ? "float32" : spec.storedDtype == DType::F16 ? "float16" : "bfloat16";
  if (dtype == "bfloat16")
    for (dist::DeviceAttr device : devices)
      if (device.getKind() == "cuda" && device.getCapability() < 80) {
        warnings.push_back("device " + device.getId().str() + " has compute capability " +
                           std::to_string(device.getCapability() / 10) + "." + std::to_string(device.getCapability() % 10) +
                           ", bfloat16 needs 8.0: using float16, whose range is smaller; llmrt has no kernels for it, and runs such a plan on CPUs");
        dtype = "float16";
        break;
      }
  if (dtype == "float32")
    return Float32Type::get(context);
  if (dtype == "float16")
    return Float16Type::get(context);
  if (dtype == "bfloat16")
    return BFloat16Type::get(context);
  throw Error("--dtype " + options.dtype + " is unknown: use auto, float32, bfloat16 or float16");
}

// The devices that the ranks get; where the split is none that can be, all that they might.
SmallVector<dist::DeviceAttr> devicesInUse(dist::TopologyAttr topology, int64_t tp, int64_t pp) {
  SmallVector<int64_t> devices = dist::usableDevices(topology);
  if (tp >= 1 && pp >= 1 && tp <= static_cast<int64_t>(devices.size()) / pp)
    if (dist::Placement placement = dist::placeRanks(topology, tp, pp); placement.why.empty())
      devices = placement.devices;
  return llvm::map_to_vector(devices, [&](int64_t i) { return topology.getDevices()[i]; });
}

// Tokens of a step where nobody says how many. Attention in f32 takes keys one by one on GPUs (kernels/cuda/attention.cu): a step of the
// longest prompts stays at 1e11 pairs of a query and a key, some ten seconds, for one of a minute passes for a device that hangs.
int64_t usualBatchedTokens(const CompileOptions &options, const ModelSpec &spec, bool cpu, Type type, int64_t maxModelLen) {
  int64_t tokens = cpu ? 512 : 8192;
  if (!cpu && type.isF32()) {
    double pairs = static_cast<double>(maxModelLen) * static_cast<double>(llvm::divideCeil(spec.qHeads, std::max<int64_t>(options.tp, 1))) *
                   static_cast<double>(llvm::divideCeil(spec.layers, std::max<int64_t>(options.pp, 1)));
    while (tokens > 256 && static_cast<double>(tokens) * pairs > 1e11)
      tokens /= 2;
  }
  return tokens;
}

Settled settle(MLIRContext *context, const CompileOptions &options, const ModelSpec &spec, dist::TopologyAttr topology,
               std::vector<std::string> &warnings) {
  Settled s;
  SmallVector<dist::DeviceAttr> devices = devicesInUse(topology, options.tp, options.pp);
  bool cpu = llvm::all_of(devices, [](dist::DeviceAttr device) { return device.getKind() == "cpu"; });
  s.weightType = weightType(context, options, spec, devices, warnings);
  // CPUs compute in f32 whatever the weights are; GPUs keep activations in the weights' type.
  s.activationType = cpu ? Type(Float32Type::get(context)) : s.weightType;
  s.kvType = s.weightType;

  if (options.maxModelLen && *options.maxModelLen > spec.maxPositions)
    throw Error("--max-model-len " + std::to_string(*options.maxModelLen) + " is longer than the " +
                std::to_string(spec.maxPositions) + " positions that the model was made for: lower it");
  int64_t maxModelLen = options.maxModelLen.value_or(spec.maxPositions);
  int64_t maxNumSeqs = options.maxNumSeqs.value_or(cpu ? 64 : 256);
  int64_t maxBatched =
      options.maxBatchedTokens.value_or(std::max(usualBatchedTokens(options, spec, cpu, s.weightType, maxModelLen), maxNumSeqs));
  if (maxBatched < maxNumSeqs)
    throw Error("--max-batched-tokens " + std::to_string(maxBatched) + " is smaller than --max-num-seqs " +
                std::to_string(maxNumSeqs) + ": a decode step takes one token of each sequence");
  for (auto [name, value] : {std::pair<const char *, int64_t>{"--max-model-len", maxModelLen},
                             {"--max-num-seqs", maxNumSeqs},
                             {"--max-batched-tokens", maxBatched},
                             {"--page-size", options.pageSize}})
    if (value < 1)
      throw Error(std::string(name) + " must be at least 1, not " + std::to_string(value));
  if (options.pageSize > std::max(maxModelLen, CompileOptions().pageSize))
    throw Error("--page-size " + std::to_string(options.pageSize) + " is more than the " + std::to_string(maxModelLen) +
                " tokens of the longest sequence, so that pages could never be full: lower it");
  if (!(options.memoryUtilization > 0 && options.memoryUtilization <= 1))
    throw Error("--memory-utilization must lie in (0, 1], not " + std::to_string(options.memoryUtilization));
  s.limits = dist::LimitsAttr::get(context, maxModelLen, maxNumSeqs, maxBatched, maxNumSeqs, options.pageSize,
                                   FloatAttr::get(Float64Type::get(context), options.memoryUtilization), s.kvType);
  return s;
}

// Collects what passes report; the first error is what the user needs.
class Collector {
public:
  explicit Collector(MLIRContext *context)
      : handler(context, [this](Diagnostic &d) {
          std::string text = d.str();
          if (d.getSeverity() == DiagnosticSeverity::Error)
            errors += (errors.empty() ? "" : "\n") + text;
          else if (d.getSeverity() == DiagnosticSeverity::Warning)
            warnings.push_back(text);
          return success();
        }) {}
  std::string errors;
  std::vector<std::string> warnings;

private:
  ScopedDiagnosticHandler handler;
};

} // namespace

// What the API calls the model: as asked, or the folder's name, or a single file's without its ending. It stands in JSON.
static std::string servedName(const CompileOptions &options) {
  std::error_code ec;
  std::filesystem::path path = std::filesystem::weakly_canonical(options.model, ec);
  std::string name = options.servedModelName;
  if (name.empty())
    name = std::filesystem::is_directory(path, ec) ? path.filename().string() : path.stem().string();
  constexpr size_t kMost = 256;
  if (name.empty() || name.size() > kMost || !isPlainText(name))
    throw Error("the name " + quote(name) + " cannot be served: it must be UTF-8 text of 1 to " + std::to_string(kMost) +
                " bytes without control characters; give one with --served-model-name");
  return name;
}

// Ranks that this machine's CPU is cut into. What is wrong with the numbers themselves is said with the split.
static int64_t cpuRanks(int64_t tp, int64_t pp) {
  if (tp < 1 || pp < 1)
    return 1;
  if (tp > kMaxDevices / pp)
    throw Error("--tp " + std::to_string(tp) + " and --pp " + std::to_string(pp) + " are more than " + std::to_string(kMaxDevices) +
                " ranks together, the most that a plan has: lower one of them");
  return tp * pp;
}

static void buildPhases(PassManager &pm, const CompileOptions &options) {
  llm::buildLLMPipeline(pm);
  if (options.stopAfter == StopAfter::Llm)
    return;
  dist::DistPipelineOptions dist;
  dist.tp = options.tp;
  dist.pp = options.pp;
  dist::buildDistPipeline(pm, dist);
  if (options.stopAfter == StopAfter::Dist)
    return;
  exec::ExecPipelineOptions exec;
  exec.shortenModelLen = !options.maxModelLen; // nobody asked for the model's own length
  exec.keepQuantized = options.dtype == "auto"; // nobody asked for another type
  exec::buildExecPipeline(pm, exec);
}

CompileResult llmc::compileModel(const CompileOptions &options) {
  CompileResult result;
  ModelSpec spec = importModel(options.model, options.dummyWeights ? LoadFormat::Dummy : LoadFormat::Auto);
  result.warnings = spec.warnings;
  const std::string served = servedName(options);
  Topology topology = options.topology.empty() ? hostCpuTopology(cpuRanks(options.tp, options.pp)) : readTopology(options.topology);

  DialectRegistry registry;
  registerDialects(registry);
  // One thread: modules are small, and threads cost more to start than they save.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Collector collector(&context);

  dist::TopologyAttr machine = topologyAttr(&context, topology);
  Settled settled = settle(&context, options, spec, machine, result.warnings);
  OwningOpRef<ModuleOp> module = buildModel(&context, spec, {settled.weightType, settled.activationType});
  (*module)->setAttr(dist::kTopologyAttr, machine);
  (*module)->setAttr(dist::kLimitsAttr, settled.limits);

  PassManager pm(&context);
  DefaultTimingManager timing;
  if (options.timing) {
    timing.setEnabled(true);
    timing.setDisplayMode(DefaultTimingManager::DisplayMode::Tree);
  }
  TimingScope rootScope = timing.getRootScope();
  pm.enableTiming(rootScope);
  if (options.printIrAfterAll)
    pm.enableIRPrinting([](Pass *, Operation *) { return false; }, [](Pass *, Operation *) { return true; },
                        /*printModuleScope=*/false, /*printAfterOnlyOnChange=*/false);
  buildPhases(pm, options);
  if (failed(pm.run(*module)))
    throw Error(collector.errors.empty() ? "compilation failed" : collector.errors);
  result.warnings.insert(result.warnings.end(), collector.warnings.begin(), collector.warnings.end());

  if (options.stopAfter != StopAfter::Plan) {
    llvm::raw_string_ostream os(result.mlir);
    module->print(os);
    return result;
  }
  EmitOptions emit;
  emit.planFolder = options.planFolder;
  emit.servedName = served;
  emit.commandLine = options.commandLine;
  emit.topologyHash = topology.sourceHash;
  emit.warnings = result.warnings;
  result.plan = emitPlan(*module, spec, emit);
  return result;
}
