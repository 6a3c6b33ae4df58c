// The one place where the executor reads the plan's ops. What verify() has proven (indices in range, shapes that
// agree) is relied on; what is this runtime's own affair (kernels, layouts, dtypes it can run) is checked here.
#include "runtime/exec/prepare.h"

#include <algorithm>
#include <string>

#include "runtime/exec/kernel_names.h"
#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {

constexpr size_t kAlign = 64;
size_t round_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

class Preparer {
public:
  Preparer(const plan::LoadedPlan &plan, uint32_t rank, const RankBases &bases, int team_size)
      : plan_(plan), program_(plan.program(rank)), rank_(rank), bases_(bases), team_size_(team_size) {}

  PreparedProgram prepare() {
    plan_angles();
    plan_shadows();
    const uint32_t count = plan::size_of(program_.ops());
    out_.ops.reserve(count);
    for (op_index_ = 0; op_index_ < count; ++op_index_)
      add(*program_.ops()->Get(op_index_));
    if (const plan::View *logits = program_.logits())
      set_logits(*logits);
    return std::move(out_);
  }

private:
  std::string where() const { return "rank " + std::to_string(rank_) + ", " + op_label(program_, op_index_); }
  [[noreturn]] void refuse(const std::string &why) const { throw Error(where() + ": " + why); }

  // --- memory of the executor's own ----------------------------------------------------------------------------

  // One table of angles per distinct (rope table, rotary_dim).
  void plan_angles() {
    size_t bytes = 0;
    const size_t tokens = plan_.root().limits()->max_batched_tokens();
    for (const plan::Op *op : plan::each(program_.ops()))
      if (const plan::Rope *rope = op->op_as_Rope(); rope && !find_angles(*rope)) {
        const plan::RopeTable &table = *plan_.root().rope_tables()->Get(rope->table());
        RopeAngles angles;
        angles.inv_freq.assign(plan::each(table.inv_freq()).begin(), plan::each(table.inv_freq()).end());
        angles.attention_factor = table.attention_factor();
        angles.rotary_dim = static_cast<int>(rope->rotary_dim());
        angle_keys_.push_back({rope->table(), rope->rotary_dim(), bytes});
        bytes += round_up(tokens * rope->rotary_dim() * sizeof(float));
        out_.angles.push_back(std::move(angles));
      }
    out_.angle_memory = Region(bytes, "the rope angles of rank " + std::to_string(rank_));
    for (size_t i = 0; i < angle_keys_.size(); ++i)
      out_.angles[i].table = reinterpret_cast<float *>(out_.angle_memory.data() + angle_keys_[i].offset);
  }

  const RopeAngles *find_angles(const plan::Rope &rope) const {
    for (size_t i = 0; i < angle_keys_.size(); ++i)
      if (angle_keys_[i].table == rope.table() && angle_keys_[i].rotary_dim == rope.rotary_dim())
        return &out_.angles[i];
    return nullptr;
  }

  // The f32 shadows of 16-bit views live for one op: the largest op decides.
  void plan_shadows() {
    size_t most = 0;
    for (const plan::Op *op : plan::each(program_.ops())) {
      size_t bytes = 0;
      for (const plan::ViewOperand &operand : plan::operands_of(*op))
        if (operand.view && needs_shadow(*op, *operand.view))
          bytes += shadow_bytes(*operand.view);
      most = std::max(most, bytes);
    }
    out_.shadow_memory = Region(most, "f32 copies of 16-bit activations of rank " + std::to_string(rank_));
  }

  bool needs_shadow(const plan::Op &op, const plan::View &view) const {
    return plan_.buffer(rank_, view).dtype() != plan::DType::F32 && op.op_type() != plan::OpKind::Send &&
           op.op_type() != plan::OpKind::Recv;
  }
  size_t shadow_bytes(const plan::View &view) const {
    return round_up(size_t{plan_.max_rows(plan_.buffer(rank_, view).rows())} * view.cols() * sizeof(float));
  }

  // --- operands ------------------------------------------------------------------------------------------------

  Bytes bytes(const plan::View &view) const {
    const plan::Buffer &buffer = plan_.buffer(rank_, view);
    const size_t element = plan::block_bytes(buffer.dtype());
    return {bases_.arena + buffer.offset() + view.col() * element, buffer.cols() * element, view.cols() * element,
            buffer.rows()};
  }

  // A view as f32: the buffer itself, or its shadow with the conversions that the access needs.
  Matrix matrix(const plan::View *view, plan::Access access) {
    const plan::Buffer &buffer = plan_.buffer(rank_, *view);
    Matrix result;
    result.cols = view->cols();
    result.rows = buffer.rows();
    const Bytes raw = bytes(*view);
    if (buffer.dtype() == plan::DType::F32) {
      result.data = reinterpret_cast<float *>(raw.data);
      result.stride = static_cast<int64_t>(buffer.cols());
      return result;
    }
    result.data = reinterpret_cast<float *>(out_.shadow_memory.data() + shadow_used_);
    result.stride = result.cols;
    shadow_used_ += shadow_bytes(*view);
    const cpu::DType dtype = memory_type(buffer.dtype(), "the activation buffer " + plan::quoted(buffer.name()));
    if (access != plan::Access::Write)
      push(WidenOp{result, raw, dtype});
    if (access != plan::Access::Read)
      after_.push_back(NarrowOp{result, raw, dtype});
    return result;
  }
  Matrix read(const plan::View *view) { return matrix(view, plan::Access::Read); }
  Matrix write(const plan::View *view) { return matrix(view, plan::Access::Write); }
  Matrix update(const plan::View *view) { return matrix(view, plan::Access::ReadWrite); }

  static Bytes as_bytes(const Matrix &matrix) {
    return {reinterpret_cast<std::byte *>(matrix.data), static_cast<size_t>(matrix.stride) * sizeof(float),
            static_cast<size_t>(matrix.cols) * sizeof(float), matrix.rows};
  }

  cpu::DType memory_type(plan::DType dtype, const std::string &what) const {
    switch (dtype) {
    case plan::DType::F32:
      return cpu::DType::f32;
    case plan::DType::F16:
      return cpu::DType::f16;
    case plan::DType::BF16:
      return cpu::DType::bf16;
    default:
      refuse(what + " is " + plan::name_of(dtype) + ", which the CPU does not compute with: compile the plan again "
             "with --dtype float32, bfloat16 or float16");
    }
  }

  // Matrices that linear multiplies with, and tables, may also be quantised.
  cpu::DType matrix_type(const plan::Weight &weight) const {
    if (weight.dtype() == plan::DType::Q8_0)
      return cpu::DType::q8_0;
    if (weight.dtype() == plan::DType::Q4_1)
      return cpu::DType::q4_1;
    return memory_type(weight.dtype(), "weight " + plan::quoted(weight.name()));
  }

  const plan::Weight &weight(uint32_t index) const { return plan_.weight(rank_, index); }
  const WeightPlace &place(uint32_t index) const { return bases_.places->weights[index]; }
  const std::byte *data_of(uint32_t index) const { return bases_.weights + place(index).offset; }

  // A norm weight or bias as f32.
  const float *vector(int64_t index) {
    if (index < 0)
      return nullptr;
    const plan::Weight &from = weight(static_cast<uint32_t>(index));
    const plan::Layout layout = place(static_cast<uint32_t>(index)).layout;
    if (layout != plan::Layout::RowMajor || from.rows() != 1)
      refuse("weight " + plan::quoted(from.name()) + " is " + std::to_string(from.rows()) + " rows of layout " +
             plan::name_of(layout) + " where one row-major row belongs: compile the plan again");
    const std::byte *data = data_of(static_cast<uint32_t>(index));
    const cpu::DType dtype = memory_type(from.dtype(), "weight " + plan::quoted(from.name()));
    if (dtype == cpu::DType::f32)
      return reinterpret_cast<const float *>(data);
    for (const auto &copy : out_.copies)
      if (copy->from == data)
        return copy->values.data();
    auto copy = std::make_unique<VectorCopy>();
    copy->from = data;
    copy->dtype = dtype;
    copy->values.resize(from.cols());
    out_.copies.push_back(std::move(copy));
    return out_.copies.back()->values.data();
  }

  cpu::KvPool pool(uint32_t layer, uint32_t kv_heads, uint32_t head_dim) const {
    const plan::KvCache &kv = *program_.kv();
    const plan::Limits &limits = *plan_.root().limits();
    cpu::KvPool pool;
    pool.base = bases_.kv + uint64_t{layer} * bases_.num_pages * kv.layer_page_bytes();
    pool.page_stride_bytes = static_cast<int64_t>(kv.layer_page_bytes());
    pool.dtype = memory_type(kv.dtype(), "the KV cache");
    pool.kv_heads = static_cast<int>(kv_heads);
    pool.page_size = static_cast<int>(limits.page_size());
    pool.head_dim = static_cast<int>(head_dim);
    return pool;
  }

  // --- ops -----------------------------------------------------------------------------------------------------

  void push(PreparedOp op) {
    out_.ops.push_back(std::move(op));
    out_.plan_op.push_back(op_index_);
  }

  void add(const plan::Op &op) {
    check_kernel(where(), op.op_type(), plan::view_of(op.kernel()));
    // Whatever communicator the plan names, ranks on CPUs of one process share the host's memory.
    shadow_used_ = 0;
    after_.clear();
    switch (op.op_type()) {
    case plan::OpKind::Embedding:
      add(*op.op_as_Embedding());
      break;
    case plan::OpKind::RmsNorm:
      add(*op.op_as_RmsNorm());
      break;
    case plan::OpKind::AddRmsNorm:
      add(*op.op_as_AddRmsNorm());
      break;
    case plan::OpKind::Add:
      push(AddOp{update(op.op_as_Add()->residual()), read(op.op_as_Add()->input())});
      break;
    case plan::OpKind::Linear:
      add(*op.op_as_Linear());
      break;
    case plan::OpKind::Rope:
      add(*op.op_as_Rope());
      break;
    case plan::OpKind::KvAppend:
      add(*op.op_as_KvAppend());
      break;
    case plan::OpKind::Attention:
      add(*op.op_as_Attention());
      break;
    case plan::OpKind::GatedAct:
      add(*op.op_as_GatedAct());
      break;
    case plan::OpKind::SelectRows:
      push(SelectRowsOp{write(op.op_as_SelectRows()->out()), read(op.op_as_SelectRows()->input())});
      break;
    case plan::OpKind::AllReduce:
      push(AllReduceOp{update(op.op_as_AllReduce()->data()), op.op_as_AllReduce()->group(),
                       op.op_as_AllReduce()->seq()});
      break;
    case plan::OpKind::AllGather:
      add(*op.op_as_AllGather());
      break;
    case plan::OpKind::Gather:
      add(*op.op_as_Gather());
      break;
    case plan::OpKind::Send:
      push(SendOp{bytes(*op.op_as_Send()->input()), op.op_as_Send()->peer(), op.op_as_Send()->seq()});
      break;
    case plan::OpKind::Recv:
      push(RecvOp{bytes(*op.op_as_Recv()->out()), op.op_as_Recv()->peer(), op.op_as_Recv()->seq()});
      break;
    case plan::OpKind::NONE:
      refuse("it has no operation: compile the plan again");
    }
    for (PreparedOp &conversion : after_)
      push(std::move(conversion));
  }

  void add(const plan::Embedding &op) {
    const plan::Weight &table = weight(op.table());
    const Matrix out = write(op.out());
    EmbeddingOp prepared{};
    prepared.call.out = out.data;
    prepared.call.out_stride = out.stride;
    prepared.call.H = out.cols;
    prepared.call.table = data_of(op.table());
    prepared.call.dtype = matrix_type(table);
    prepared.call.packed = place(op.table()).layout == plan::Layout::Packed16;
    prepared.call.begin = static_cast<int64_t>(op.vocab_begin());
    prepared.call.end = static_cast<int64_t>(op.vocab_begin() + op.vocab_count());
    prepared.call.scale = op.scale();
    push(prepared);
  }

  void add(const plan::RmsNorm &op) {
    const Matrix input = read(op.input()), out = write(op.out());
    push(RmsNormOp{out, input, vector(op.weight()), op.eps(), op.weight_offset()});
  }

  void add(const plan::AddRmsNorm &op) {
    const Matrix residual = update(op.residual()), input = read(op.input()), out = write(op.out());
    push(AddRmsNormOp{out, residual, input, vector(op.weight()), op.eps(), op.weight_offset()});
  }

  void add(const plan::Linear &op) {
    const plan::Weight &w = weight(op.weight());
    if (const plan::Layout layout = place(op.weight()).layout; layout != plan::Layout::Packed16)
      refuse("weight " + plan::quoted(w.name()) + " is " + plan::name_of(layout) +
             ", but the CPU's linear kernel reads packed16: compile the plan again");
    const Matrix input = read(op.input()), out = write(op.out());
    LinearOp prepared{};
    prepared.rows = out.rows;
    prepared.call.x = input.data;
    prepared.call.ldx = input.stride;
    prepared.call.w = data_of(op.weight());
    prepared.call.dtype = matrix_type(w);
    prepared.call.y = out.data;
    prepared.call.ldy = out.stride;
    prepared.call.N = static_cast<int64_t>(w.rows());
    prepared.call.K = static_cast<int64_t>(w.cols());
    prepared.call.bias = vector(op.bias());
    push(prepared);
    need_scratch(cpu::linear_scratch_bytes(team_size_, plan_.max_rows(out.rows), prepared.call.K));
  }

  void add(const plan::Rope &op) {
    const Matrix q = update(op.q()), k = update(op.k());
    const RopeAngles &angles = *find_angles(op);
    RopeOp prepared{};
    const auto fill = [&](cpu::Rope &rope, const Matrix &on, uint32_t heads, int32_t norm) {
      rope.x = on.data;
      rope.x_stride = on.stride;
      rope.table = angles.table;
      rope.heads = static_cast<int>(heads);
      rope.head_dim = static_cast<int>(op.head_dim());
      rope.rotary_dim = static_cast<int>(op.rotary_dim());
      rope.style = op.style() == plan::RopeStyle::NeoX ? cpu::RopeStyle::halves : cpu::RopeStyle::pairs;
      rope.norm_weight = vector(norm);
      rope.norm_eps = op.eps();
    };
    fill(prepared.q, q, op.q_heads(), op.q_norm());
    fill(prepared.k, k, op.kv_heads(), op.k_norm());
    push(prepared);
  }

  void add(const plan::KvAppend &op) {
    const Matrix k = read(op.k()), v = read(op.v());
    push(KvAppendOp{pool(op.layer(), op.kv_heads(), op.head_dim()), k, v});
  }

  void add(const plan::Attention &op) {
    const Matrix q = read(op.q()), out = write(op.out());
    AttentionOp prepared{};
    prepared.call.q = q.data;
    prepared.call.q_stride = q.stride;
    prepared.call.out = out.data;
    prepared.call.out_stride = out.stride;
    prepared.call.kv = pool(op.layer(), op.kv_heads(), op.head_dim());
    prepared.call.q_heads = static_cast<int>(op.q_heads());
    prepared.call.scale = op.scale();
    prepared.call.window = static_cast<int>(std::min<uint32_t>(op.window(), INT32_MAX));
    prepared.call.softcap = op.softcap();
    prepared.kv_head_of_q.assign(plan::each(op.kv_head_of_q()).begin(), plan::each(op.kv_head_of_q()).end());
    push(std::move(prepared));
    need_scratch(cpu::attention_scratch_bytes(team_size_, static_cast<int>(op.q_heads()),
                                              static_cast<int>(op.kv_heads()), static_cast<int>(op.head_dim()),
                                              plan_.root().limits()->max_batched_tokens(),
                                              plan_.root().limits()->max_model_len()));
  }

  void add(const plan::GatedAct &op) {
    const Matrix gate = read(op.gate()), up = read(op.up()), out = write(op.out());
    cpu::Act act = cpu::Act::silu;
    switch (op.act()) {
    case plan::Activation::Silu:
      break;
    case plan::Activation::GeluTanh:
      act = cpu::Act::gelu_tanh;
      break;
    case plan::Activation::Gelu:
      act = cpu::Act::gelu;
      break;
    }
    push(GatedActOp{out, gate, up, act});
  }

  static std::vector<uint64_t> part_bytes(const flatbuffers::Vector<uint64_t> *counts) {
    std::vector<uint64_t> result;
    for (const uint64_t count : plan::each(counts))
      result.push_back(count * sizeof(float));
    return result;
  }

  void add(const plan::AllGather &op) {
    const Bytes input = as_bytes(read(op.input())), out = as_bytes(write(op.out()));
    push(AllGatherOp{out, input, part_bytes(op.counts()), op.group(), op.seq()});
  }

  void add(const plan::Gather &op) {
    const Bytes input = as_bytes(read(op.input()));
    const plan::Group &group = *plan_.root().groups()->Get(op.group());
    const bool receives = group.ranks()->Get(op.root()) == rank_;
    const Bytes out = receives ? as_bytes(write(op.out())) : Bytes{};
    push(GatherOp{out, input, part_bytes(op.counts()), op.root(), op.group(), op.seq()});
  }

  void set_logits(const plan::View &view) {
    const plan::Buffer &buffer = plan_.buffer(rank_, view);
    if (buffer.dtype() != plan::DType::F32 || buffer.rows() != plan::Rows::Logits || view.col() != 0 ||
        view.cols() != buffer.cols())
      throw Error("rank " + std::to_string(rank_) + " gives its logits as columns [" + std::to_string(view.col()) +
                  ", +" + std::to_string(view.cols()) + ") of the " + plan::name_of(buffer.dtype()) + " buffer " +
                  plan::quoted(buffer.name()) + " of " + std::to_string(buffer.cols()) +
                  " columns, but they must fill an f32 buffer of logits rows: compile the plan again");
    const Bytes raw = bytes(view);
    out_.logits = {reinterpret_cast<float *>(raw.data), static_cast<int64_t>(buffer.cols()),
                   static_cast<int64_t>(view.cols()), buffer.rows()};
  }

  void need_scratch(size_t bytes) { out_.team_scratch = std::max(out_.team_scratch, bytes); }

  struct AngleKey {
    uint32_t table, rotary_dim;
    size_t offset;
  };

  const plan::LoadedPlan &plan_;
  const plan::Program &program_;
  uint32_t rank_;
  RankBases bases_;
  int team_size_;
  PreparedProgram out_;
  uint32_t op_index_ = 0;
  size_t shadow_used_ = 0;
  std::vector<PreparedOp> after_;
  std::vector<AngleKey> angle_keys_;
};

} // namespace

std::string op_label(const plan::Program &program, uint32_t index) {
  const plan::Op &op = *program.ops()->Get(index);
  return "op " + std::to_string(index) + " (" + plan::name_of(op.op_type()) +
         (op.layer() >= 0 ? ", layer " + std::to_string(op.layer()) : "") + ")";
}

size_t PreparedProgram::extra_bytes() const {
  size_t bytes = angle_memory.mapped() + shadow_memory.mapped();
  for (const auto &copy : copies)
    bytes += copy->values.size() * sizeof(float);
  return bytes;
}

void PreparedProgram::widen_vectors() {
  for (const auto &copy : copies)
    cpu::to_f32(copy->values.data(), copy->from, copy->dtype, static_cast<int64_t>(copy->values.size()));
}

PreparedProgram prepare(const plan::LoadedPlan &plan, uint32_t rank, const RankBases &bases, int team_size) {
  return Preparer(plan, rank, bases, team_size).prepare();
}

} // namespace llmrt::exec
