#include "compiler/emit/emit_plan.h"

#include "compiler/emit/emit_program.h"
#include "runtime/plan/access.h"
#include "runtime/plan/version.h"

#include <filesystem>

using namespace mlir;
using namespace llmc;
namespace fb = llmrt::plan;
namespace fs = std::filesystem;

// Names a file relative to the plan's folder where it lies below it, so that the folder can be moved as a whole.
static std::string planPath(const std::string &path, const std::string &folder) {
  fs::path absolute = fs::weakly_canonical(fs::absolute(path)), base = fs::weakly_canonical(fs::absolute(folder));
  fs::path relative = absolute.lexically_relative(base);
  bool below = !relative.empty() && *relative.begin() != "..";
  return below ? relative.string() : absolute.string();
}

static std::unique_ptr<fb::ModelT> emitModel(const ModelSpec &spec, const EmitOptions &options, ModuleOp module) {
  auto m = std::make_unique<fb::ModelT>();
  m->name = spec.name;
  m->served_name = options.servedName.empty() ? spec.name : options.servedName;
  m->model_type = spec.modelType;
  m->source = spec.source;
  m->hidden = spec.hidden;
  m->layers = spec.layers;
  m->q_heads = spec.qHeads;
  m->kv_heads = spec.kvHeads;
  m->head_dim = spec.headDim;
  m->ffn = spec.ffn;
  m->vocab = spec.vocab;
  m->max_positions = spec.maxPositions;
  m->tied_embeddings = spec.tiedEmbeddings;
  m->kv_dtype = planDType(module->getAttrOfType<dist::LimitsAttr>(dist::kLimitsAttr).getKvDtype());
  auto program = *module.getOps<exec::ProgramOp>().begin();
  auto embedding = *program.getBody().getOps<exec::EmbeddingOp>().begin();
  m->weight_dtype = planDType(embedding.getTable().getType().getElement());
  m->activation_dtype = planDType(embedding.getOut().getType().getElement());
  return m;
}

static std::unique_ptr<fb::TextT> emitText(const TextAssets &text) {
  auto t = std::make_unique<fb::TextT>();
  t->tokenizer_json = text.tokenizerJson;
  t->chat_template = text.chatTemplate;
  t->bos_token = text.bosToken;
  t->eos_token = text.eosToken;
  t->bos_token_id = text.bosTokenId.value_or(-1);
  t->eos_token_ids = text.eosTokenIds;
  auto number = [](std::optional<double> v) {
    return v ? flatbuffers::Optional<float>(static_cast<float>(*v)) : flatbuffers::Optional<float>();
  };
  t->temperature = number(text.generation.temperature);
  t->top_p = number(text.generation.topP);
  t->min_p = number(text.generation.minP);
  t->repetition_penalty = number(text.generation.repetitionPenalty);
  if (text.generation.topK)
    t->top_k = static_cast<int32_t>(*text.generation.topK);
  return t;
}

static std::unique_ptr<fb::TopologyT> emitTopology(dist::TopologyAttr topology) {
  auto t = std::make_unique<fb::TopologyT>();
  for (auto host : topology.getHosts().getAsRange<StringAttr>())
    t->hosts.push_back(host.str());
  for (dist::DeviceAttr d : topology.getDevices()) {
    auto device = std::make_unique<fb::DeviceT>();
    device->id = d.getId().str();
    device->kind = d.getKind() == "cpu" ? fb::DeviceKind::Cpu : fb::DeviceKind::Cuda;
    device->name = d.getName().str();
    device->uuid = d.getUuid().str();
    device->pci_id = d.getPci().str();
    device->host = static_cast<uint32_t>(d.getHost());
    device->memory_bytes = d.getMemory();
    device->reserved_bytes = d.getReserved();
    device->capability = static_cast<uint32_t>(d.getCapability());
    device->memory_bandwidth = d.getBandwidth().getValueAsDouble();
    device->peak_flops = d.getFlops().getValueAsDouble();
    t->devices.push_back(std::move(device));
  }
  for (dist::LinkAttr l : topology.getLinks()) {
    auto link = std::make_unique<fb::LinkT>();
    link->a = static_cast<uint32_t>(l.getA());
    link->b = static_cast<uint32_t>(l.getB());
    link->kind = l.getKind().str();
    link->bandwidth = l.getBandwidth().getValueAsDouble();
    link->latency = l.getLatency().getValueAsDouble();
    link->p2p = l.getP2p();
    t->links.push_back(std::move(link));
  }
  return t;
}

static std::unique_ptr<fb::LimitsT> emitLimits(dist::LimitsAttr limits, int64_t numPages) {
  auto l = std::make_unique<fb::LimitsT>();
  l->max_model_len = static_cast<uint32_t>(limits.getMaxModelLen());
  l->max_num_seqs = static_cast<uint32_t>(limits.getMaxNumSeqs());
  l->max_batched_tokens = static_cast<uint32_t>(limits.getMaxBatchedTokens());
  l->max_logits_rows = static_cast<uint32_t>(limits.getMaxLogitsRows());
  l->page_size = static_cast<uint32_t>(limits.getPageSize());
  l->num_pages = static_cast<uint32_t>(numPages);
  l->memory_utilization = static_cast<float>(limits.getMemoryUtilization().getValueAsDouble());
  return l;
}

// Bytes of each buffer follow from its rows at their largest.
static void setBufferBytes(fb::PlanT &plan) {
  for (auto &program : plan.programs)
    for (auto &buffer : program->buffers) {
      uint64_t rows = buffer->rows == fb::Rows::Tokens ? plan.limits->max_batched_tokens : plan.limits->max_logits_rows;
      fb::row_major_bytes(buffer->dtype, rows, buffer->cols, buffer->bytes);
    }
}

std::vector<uint8_t> llmc::emitPlan(ModuleOp module, const ModelSpec &spec, const EmitOptions &options) {
  fb::PlanT plan;
  auto topology = module->getAttrOfType<dist::TopologyAttr>(dist::kTopologyAttr);
  auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
  auto limits = module->getAttrOfType<dist::LimitsAttr>(dist::kLimitsAttr);
  int64_t numPages = module->getAttrOfType<IntegerAttr>(exec::kNumPagesAttr).getInt();

  plan.version_major = fb::kVersionMajor;
  plan.version_minor = fb::kVersionMinor;
  plan.provenance = std::make_unique<fb::ProvenanceT>();
  plan.provenance->compiler_version = "llmc " LLMC_VERSION;
  plan.provenance->command_line = options.commandLine;
  plan.provenance->config_hash = spec.configHash;
  plan.provenance->topology_name = topology.getName().str();
  plan.provenance->topology_hash = options.topologyHash;
  plan.provenance->warnings = options.warnings;
  plan.model = emitModel(spec, options, module);
  plan.text = emitText(spec.text);
  plan.limits = emitLimits(limits, numPages);
  plan.topology = emitTopology(topology);
  plan.tp = static_cast<uint32_t>(mesh.getTp());
  plan.pp = static_cast<uint32_t>(mesh.getPp());
  for (const FileRef &ref : spec.files) {
    auto file = std::make_unique<fb::FileT>();
    file->path = planPath(ref.path, options.planFolder);
    file->bytes = ref.bytes;
    file->header_hash = ref.headerHash;
    file->header_bytes = ref.headerBytes;
    plan.files.push_back(std::move(file));
  }
  PlanTables tables(plan);
  for (auto program : module.getOps<exec::ProgramOp>()) {
    plan.programs.push_back(emitProgram(program, numPages, tables));
    if (plan.programs.back()->logits)
      plan.output_rank = plan.programs.back()->rank;
  }
  for (const auto &tensor : plan.tensors)
    plan.model->parameters += tensor->rows * tensor->cols;
  setBufferBytes(plan);

  flatbuffers::FlatBufferBuilder builder(1 << 20);
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  return std::vector<uint8_t>(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
}
