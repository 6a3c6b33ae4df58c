#include "compiler/emit/emit_program.h"

#include "compiler/support/error.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace llmc;
namespace fb = llmrt::plan;

static fb::DType fileDType(StringRef name) {
  auto dtype = llvm::StringSwitch<std::optional<fb::DType>>(name)
                   .Case("f32", fb::DType::F32)
                   .Case("f16", fb::DType::F16)
                   .Case("bf16", fb::DType::BF16)
                   .Case("q4_0", fb::DType::Q4_0)
                   .Case("q4_1", fb::DType::Q4_1)
                   .Case("q5_0", fb::DType::Q5_0)
                   .Case("q5_1", fb::DType::Q5_1)
                   .Case("q8_0", fb::DType::Q8_0)
                   .Case("q4_k", fb::DType::Q4_K)
                   .Case("q5_k", fb::DType::Q5_K)
                   .Case("q6_k", fb::DType::Q6_K)
                   .Default(std::nullopt);
  if (!dtype)
    throw Error("internal: tensor type '" + name.str() + "' has no form in the plan");
  return *dtype;
}

fb::DType llmc::planDType(Type type) {
  if (auto quant = dyn_cast<exec::QuantType>(type))
    return quant.getFormat() == exec::QuantFormat::Q8_0 ? fb::DType::Q8_0 : fb::DType::Q4_1;
  return type.isF32() ? fb::DType::F32 : type.isF16() ? fb::DType::F16 : fb::DType::BF16;
}

// How a tensor without a file is filled: norms with ones and biases with zeros, so that activations keep their scale;
// matrices by variance 1 / fan-in (LeCun).
static void setFill(fb::TensorT &tensor, StringRef name) {
  if (name.ends_with("norm.weight")) {
    tensor.fill = fb::Fill::Ones;
  } else if (name.ends_with(".bias")) {
    tensor.fill = fb::Fill::Zeros;
  } else {
    tensor.fill = fb::Fill::Normal;
    tensor.fill_scale = 1.0f / std::sqrt(static_cast<float>(tensor.cols));
  }
}

uint32_t PlanTables::tensor(exec::PartAttr part) {
  auto [entry, fresh] = tensors.try_emplace(part.getName(), static_cast<uint32_t>(plan.tensors.size()));
  if (!fresh)
    return entry->second;
  llm::TensorAttr attr = part.getTensor();
  auto tensor = std::make_unique<fb::TensorT>();
  tensor->name = part.getName().str();
  tensor->rows = attr.getShape().size() == 2 ? attr.getShape()[0] : 1;
  tensor->cols = attr.getShape().back();
  tensor->dtype = fileDType(attr.getDtype());
  tensor->file = static_cast<int32_t>(attr.getFile());
  if (attr.getFile() < 0) {
    setFill(*tensor, part.getName());
  } else {
    tensor->offset = attr.getOffset();
    tensor->bytes = attr.getBytes();
  }
  plan.tensors.push_back(std::move(tensor));
  return entry->second;
}

uint32_t PlanTables::ropeTable(ArrayRef<float> invFreq, float attentionFactor) {
  auto [entry, fresh] = ropeTables.try_emplace({invFreq.vec(), attentionFactor}, plan.rope_tables.size());
  if (fresh) {
    auto table = std::make_unique<fb::RopeTableT>();
    table->inv_freq = invFreq.vec();
    table->attention_factor = attentionFactor;
    plan.rope_tables.push_back(std::move(table));
  }
  return entry->second;
}

uint32_t PlanTables::group(ArrayRef<int64_t> ranks) {
  auto [entry, fresh] = groups.try_emplace(ranks.vec(), plan.groups.size());
  if (fresh) {
    auto group = std::make_unique<fb::GroupT>();
    group->name = "ranks " + std::to_string(ranks.front()) + "-" + std::to_string(ranks.back());
    group->ranks.assign(ranks.begin(), ranks.end());
    plan.groups.push_back(std::move(group));
  }
  return entry->second;
}

namespace {
class ProgramEmitter {
public:
  ProgramEmitter(exec::ProgramOp source, PlanTables &tables)
      : source(source), tables(tables), program(std::make_unique<fb::ProgramT>()) {}

  std::unique_ptr<fb::ProgramT> emit(int64_t numPages) {
    program->rank = source.getRank();
    program->stage = source.getStage();
    program->tp_index = source.getTpIndex();
    program->device = source.getDevice();
    program->weight_bytes = *source.getWeightBytes();
    program->arena_bytes = *source.getArenaBytes();
    program->workspace_bytes = *source.getWorkspaceBytes();
    emitKv(numPages);
    emitLedger();
    for (Operation &op : source.getBody().front())
      emitOp(op);
    return std::move(program);
  }

private:
  exec::ProgramOp source;
  PlanTables &tables;
  std::unique_ptr<fb::ProgramT> program;
  llvm::DenseMap<Value, uint32_t> weights;
  llvm::DenseMap<Operation *, uint32_t> buffers;

  std::unique_ptr<fb::View> view(Value value) {
    if (!value)
      return nullptr;
    auto [buffer, begin] = exec::resolveView(value);
    return std::make_unique<fb::View>(buffers.lookup(buffer), static_cast<uint32_t>(begin),
                                      static_cast<uint32_t>(cast<exec::BufferType>(value.getType()).getCols()));
  }
  int32_t optionalWeight(Value value) { return value ? static_cast<int32_t>(weights.lookup(value)) : -1; }

  void emitKv(int64_t numPages);
  void emitLedger();
  void emitWeight(exec::WeightOp op);
  void emitBuffer(exec::BufferOp op);
  void emitOp(Operation &op);
  void emitExecuted(Operation &op);

  template <typename CollectiveT, typename OpTy> void setCollective(CollectiveT &table, OpTy op) {
    table.group = tables.group(op.getGroup());
    table.seq = op.getSeq();
    table.comm = static_cast<fb::Comm>(*op.getComm());
    table.algorithm = static_cast<fb::Algorithm>(*op.getAlgorithm());
  }
  template <typename Counts> std::vector<uint64_t> counts(Counts values) {
    return std::vector<uint64_t>(values.begin(), values.end());
  }

  void fill(exec::EmbeddingOp op, fb::OpKindUnion &out);
  void fill(exec::RmsNormOp op, fb::OpKindUnion &out);
  void fill(exec::AddRmsNormOp op, fb::OpKindUnion &out);
  void fill(exec::AddOp op, fb::OpKindUnion &out);
  void fill(exec::LinearOp op, fb::OpKindUnion &out);
  void fill(exec::RopeOp op, fb::OpKindUnion &out);
  void fill(exec::KvAppendOp op, fb::OpKindUnion &out);
  void fill(exec::AttentionOp op, fb::OpKindUnion &out);
  void fill(exec::GatedActOp op, fb::OpKindUnion &out);
  void fill(exec::SelectRowsOp op, fb::OpKindUnion &out);
  void fill(exec::AllReduceOp op, fb::OpKindUnion &out);
  void fill(exec::AllGatherOp op, fb::OpKindUnion &out);
  void fill(exec::GatherOp op, fb::OpKindUnion &out);
  void fill(exec::SendOp op, fb::OpKindUnion &out);
  void fill(exec::RecvOp op, fb::OpKindUnion &out);
};
} // namespace

void ProgramEmitter::emitKv(int64_t numPages) {
  exec::KvAttr attr = *source.getKv();
  auto kv = std::make_unique<fb::KvCacheT>();
  // Layers of the model, in the order of the rank's own.
  for (auto attention : source.getBody().getOps<exec::AttentionOp>())
    kv->layers.push_back(static_cast<uint32_t>(attention.getLayer()));
  kv->heads.assign(attr.getHeads().begin(), attr.getHeads().end());
  kv->head_dim = static_cast<uint32_t>(attr.getHeadDim());
  kv->dtype = planDType(attr.getElement());
  kv->layer_page_bytes = attr.getLayerPageBytes();
  kv->page_bytes = attr.getPageBytes();
  kv->bytes = static_cast<uint64_t>(numPages) * attr.getPageBytes();
  kv->duplicated_heads = static_cast<uint32_t>(attr.getDuplicated());
  program->kv = std::move(kv);
}

void ProgramEmitter::emitLedger() {
  auto ledger = std::make_unique<fb::LedgerT>();
  auto bytes = [&](StringRef name) -> uint64_t { return source.getLedger()->getAs<IntegerAttr>(name).getInt(); };
  for (StringRef name : {"weights", "activations", "workspace", "communication", "runtime", "kv_cache"}) {
    auto line = std::make_unique<fb::LedgerLineT>();
    line->name = name.str();
    line->bytes = bytes(name);
    ledger->lines.push_back(std::move(line));
  }
  ledger->total = bytes("total");
  ledger->budget = bytes("budget");
  ledger->memory = bytes("memory");
  program->ledger = std::move(ledger);
}

void ProgramEmitter::emitWeight(exec::WeightOp op) {
  auto weight = std::make_unique<fb::WeightT>();
  exec::WeightType type = op.getResult().getType();
  weight->name = op.getName().str();
  weight->dtype = planDType(type.getElement());
  weight->layout = static_cast<fb::Layout>(type.getLayout());
  weight->rows = type.getRows();
  weight->cols = type.getCols();
  weight->offset = *op.getOffset();
  weight->bytes = type.getBytes();
  for (auto part : op.getParts().getAsRange<exec::PartAttr>()) {
    auto out = std::make_unique<fb::WeightPartT>();
    llm::BoxAttr box = part.getBox();
    out->tensor = tables.tensor(part);
    out->row = box.getRow(), out->rows = box.getRows();
    out->col = box.getCol(), out->cols = box.getCols();
    out->dst_row = part.getDstRow(), out->dst_col = part.getDstCol();
    out->replica = box.getReplica();
    weight->parts.push_back(std::move(out));
  }
  weights[op.getResult()] = static_cast<uint32_t>(program->weights.size());
  program->weights.push_back(std::move(weight));
}

void ProgramEmitter::emitBuffer(exec::BufferOp op) {
  auto buffer = std::make_unique<fb::BufferT>();
  exec::BufferType type = op.getResult().getType();
  buffer->name = op.getName().str();
  buffer->dtype = planDType(type.getElement());
  buffer->rows = static_cast<fb::Rows>(type.getRows());
  buffer->cols = type.getCols();
  buffer->offset = *op.getOffset();
  buffer->first_op = *op.getFirstOp();
  buffer->last_op = *op.getLastOp();
  buffers[op] = static_cast<uint32_t>(program->buffers.size());
  program->buffers.push_back(std::move(buffer));
}

void ProgramEmitter::emitOp(Operation &op) {
  if (auto weight = dyn_cast<exec::WeightOp>(op))
    return emitWeight(weight);
  if (auto buffer = dyn_cast<exec::BufferOp>(op))
    return emitBuffer(buffer);
  if (auto output = dyn_cast<exec::OutputOp>(op)) {
    program->logits = view(output.getLogits());
    return;
  }
  if (exec::isExecuted(&op))
    emitExecuted(op);
}

void ProgramEmitter::emitExecuted(Operation &op) {
  auto out = std::make_unique<fb::OpT>();
  out->kernel = op.getAttrOfType<StringAttr>("kernel").str();
  auto number = [&](StringRef name, int64_t missing) {
    auto attr = op.getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : missing;
  };
  out->stream = static_cast<uint32_t>(number("stream", 0));
  out->layer = static_cast<int32_t>(number("layer", -1));
  llvm::TypeSwitch<Operation *>(&op)
      .Case<exec::EmbeddingOp, exec::RmsNormOp, exec::AddRmsNormOp, exec::AddOp, exec::LinearOp, exec::RopeOp,
            exec::KvAppendOp, exec::AttentionOp, exec::GatedActOp, exec::SelectRowsOp, exec::AllReduceOp,
            exec::AllGatherOp, exec::GatherOp, exec::SendOp, exec::RecvOp>([&](auto typed) { fill(typed, out->op); })
      .Default([](Operation *other) {
        throw Error("internal: " + other->getName().getStringRef().str() + " has no form in the plan");
      });
  program->ops.push_back(std::move(out));
}

void ProgramEmitter::fill(exec::EmbeddingOp op, fb::OpKindUnion &out) {
  fb::EmbeddingT t;
  t.out = view(op.getOut());
  t.table = weights.lookup(op.getTable());
  t.vocab_begin = op.getVocabBegin();
  t.vocab_count = op.getTable().getType().getRows();
  t.scale = op.getScale().convertToFloat();
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::RmsNormOp op, fb::OpKindUnion &out) {
  fb::RmsNormT t;
  t.out = view(op.getOut());
  t.input = view(op.getInput());
  t.weight = weights.lookup(op.getWeight());
  t.eps = op.getEps().convertToFloat();
  t.weight_offset = op.getWeightOffset().convertToFloat();
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::AddRmsNormOp op, fb::OpKindUnion &out) {
  fb::AddRmsNormT t;
  t.out = view(op.getOut());
  t.residual = view(op.getResidual());
  t.input = view(op.getInput());
  t.weight = weights.lookup(op.getWeight());
  t.eps = op.getEps().convertToFloat();
  t.weight_offset = op.getWeightOffset().convertToFloat();
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::AddOp op, fb::OpKindUnion &out) {
  fb::AddT t;
  t.residual = view(op.getResidual());
  t.input = view(op.getInput());
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::LinearOp op, fb::OpKindUnion &out) {
  fb::LinearT t;
  t.out = view(op.getOut());
  t.input = view(op.getInput());
  t.weight = weights.lookup(op.getWeight());
  t.bias = optionalWeight(op.getBias());
  t.stream_rows = static_cast<uint32_t>(op.getStreamRows());
  t.wide_rows = static_cast<uint32_t>(op.getWideRows());
  t.fused_rows = static_cast<uint32_t>(op.getFusedRows());
  t.paired_rows = static_cast<uint32_t>(op.getPairedRows());
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::RopeOp op, fb::OpKindUnion &out) {
  fb::RopeT t;
  t.q = view(op.getQ());
  t.k = view(op.getK());
  t.q_heads = op.getQHeads();
  t.kv_heads = op.getKvHeads();
  t.head_dim = op.getHeadDim();
  t.rotary_dim = op.getRotaryDim();
  t.style = static_cast<fb::RopeStyle>(op.getStyle());
  t.table = tables.ropeTable(op.getInvFreq(), op.getAttentionFactor().convertToFloat());
  t.q_norm = optionalWeight(op.getQNorm());
  t.k_norm = optionalWeight(op.getKNorm());
  t.eps = op.getEps().convertToFloat();
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::KvAppendOp op, fb::OpKindUnion &out) {
  fb::KvAppendT t;
  t.k = view(op.getK());
  t.v = view(op.getV());
  t.layer = op.getKvLayer();
  t.kv_heads = op.getKvHeads();
  t.head_dim = op.getHeadDim();
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::AttentionOp op, fb::OpKindUnion &out) {
  fb::AttentionT t;
  t.out = view(op.getOut());
  t.q = view(op.getQ());
  t.layer = op.getKvLayer();
  t.q_heads = op.getQHeads();
  t.kv_heads = op.getKvHeads();
  t.head_dim = op.getHeadDim();
  t.kv_head_of_q.assign(op.getKvHeadOfQ().begin(), op.getKvHeadOfQ().end());
  t.scale = op.getScale().convertToFloat();
  t.window = static_cast<uint32_t>(op.getWindow());
  t.softcap = op.getSoftcap().convertToFloat();
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::GatedActOp op, fb::OpKindUnion &out) {
  fb::GatedActT t;
  t.out = view(op.getOut());
  t.gate = view(op.getGate());
  t.up = view(op.getUp());
  t.act = static_cast<fb::Activation>(op.getAct());
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::SelectRowsOp op, fb::OpKindUnion &out) {
  fb::SelectRowsT t;
  t.out = view(op.getOut());
  t.input = view(op.getInput());
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::AllReduceOp op, fb::OpKindUnion &out) {
  fb::AllReduceT t;
  t.data = view(op.getData());
  setCollective(t, op);
  t.one_shot_bytes = static_cast<uint64_t>(op.getOneShotBytes());
  t.two_shot_bytes = static_cast<uint64_t>(op.getTwoShotBytes());
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::AllGatherOp op, fb::OpKindUnion &out) {
  fb::AllGatherT t;
  t.out = view(op.getOut());
  t.input = view(op.getInput());
  t.counts = counts(op.getCounts());
  setCollective(t, op);
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::GatherOp op, fb::OpKindUnion &out) {
  fb::GatherT t;
  t.out = view(op.getOut());
  t.input = view(op.getInput());
  t.counts = counts(op.getCounts());
  t.root = op.getRoot();
  setCollective(t, op);
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::SendOp op, fb::OpKindUnion &out) {
  fb::SendT t;
  t.input = view(op.getInput());
  t.peer = op.getPeer();
  t.seq = op.getSeq();
  t.comm = static_cast<fb::Comm>(*op.getComm());
  out.Set(std::move(t));
}

void ProgramEmitter::fill(exec::RecvOp op, fb::OpKindUnion &out) {
  fb::RecvT t;
  t.out = view(op.getOut());
  t.peer = op.getPeer();
  t.seq = op.getSeq();
  t.comm = static_cast<fb::Comm>(*op.getComm());
  out.Set(std::move(t));
}

std::unique_ptr<fb::ProgramT> llmc::emitProgram(exec::ProgramOp program, int64_t numPages, PlanTables &tables) {
  return ProgramEmitter(program, tables).emit(numPages);
}
