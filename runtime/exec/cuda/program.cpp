#include "runtime/exec/cuda/program.h"

#include "runtime/exec/cuda/fused_product.h"
#include "runtime/exec/neighbours.h"
#include "runtime/exec/own_logits.h"
#include "runtime/plan/access.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

namespace {

k::Activation activation(plan::Activation a) {
  return a == plan::Activation::Silu       ? k::Activation::silu
         : a == plan::Activation::GeluTanh ? k::Activation::gelu_tanh
                                           : k::Activation::gelu;
}

// A column range of an activation buffer.
struct Operand {
  std::byte *data = nullptr;
  int64_t ld = 0; // elements
  int64_t cols = 0;
  k::DType type = k::DType::f32;
  plan::Rows rows = plan::Rows::Tokens;

  int64_t count(const StepShape &shape) const { return rows == plan::Rows::Tokens ? shape.tokens : shape.rows; }
};

} // namespace

class ProgramBuilder {
public:
  ProgramBuilder(const plan::LoadedPlan &plan, uint32_t rank, const DeviceBases &bases, Program &out)
      : plan_(plan), program_(plan.program(rank)), rank_(rank), bases_(bases), out_(out) {}

  void build() {
    planAttentionWorkspace();
    for (index_ = 0; index_ < plan::size_of(program_.ops()); ++index_)
      add(*program_.ops()->Get(index_));
    if (const plan::View *logits = program_.logits())
      out_.logits_ = reinterpret_cast<const float *>(operand(logits).data);
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw Error("rank " + std::to_string(rank_) + ", op " + std::to_string(index_) + " (" +
                plan::name_of(program_.ops()->Get(index_)->op_type()) + "): " + why);
  }

  k::DType type(plan::DType dtype) const {
    switch (dtype) {
    case plan::DType::F32: return k::DType::f32;
    case plan::DType::F16: return k::DType::f16;
    case plan::DType::BF16: return k::DType::bf16;
    default: refuse(std::string("the CUDA backend does not compute with ") + plan::name_of(dtype));
    }
  }

  Operand operand(const plan::View *view) const {
    const plan::Buffer &buffer = plan_.buffer(rank_, *view);
    Operand o;
    o.type = type(buffer.dtype());
    o.ld = static_cast<int64_t>(buffer.cols());
    o.cols = view->cols();
    o.rows = buffer.rows();
    o.data = bases_.arena + buffer.offset() + view->col() * k::dtype_bytes(o.type);
    return o;
  }

  const plan::Weight &weight(int64_t index) const { return *program_.weights()->Get(static_cast<uint32_t>(index)); }
  void *weightData(int64_t index) const {
    if (weight(index).layout() != plan::Layout::RowMajor)
      refuse("weight " + plan::quoted(weight(index).name()) + " is " + plan::name_of(weight(index).layout()) +
             ", a layout of CPUs: compile the plan for cuda devices");
    return bases_.weights + weight(index).offset();
  }

  template <typename T> T *upload(const std::vector<T> &values, const char *purpose) {
    DeviceMemory memory(values.size() * sizeof(T), purpose);
    LLMRT_CHECK(cudaMemcpy(memory.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    T *data = reinterpret_cast<T *>(memory.data());
    out_.owned_.push_back(std::move(memory));
    return data;
  }

  // Norm weights and biases are f32 for the kernels, whatever the plan keeps them in.
  const float *vectorF32(int64_t index) {
    if (index < 0)
      return nullptr;
    if (weight(index).dtype() != plan::DType::F32)
      refuse("vector " + plan::quoted(weight(index).name()) + " is " + plan::name_of(weight(index).dtype()) + ", f32 is needed");
    return static_cast<const float *>(weightData(index));
  }

  // A bias in the type of the product's output, for the library's epilogue.
  const void *biasLike(int64_t index, k::DType out) {
    if (index < 0 || out == k::DType::f32)
      return index < 0 ? nullptr : weightData(index);
    const int64_t n = static_cast<int64_t>(weight(index).cols());
    DeviceMemory memory(static_cast<size_t>(n) * 2, "a bias");
    k::add_bias(memory.data(), n, vectorF32(index), 1, n, out, nullptr); // 0 + bias
    LLMRT_CHECK(cudaDeviceSynchronize());
    const void *data = memory.data();
    out_.owned_.push_back(std::move(memory));
    return data;
  }

  void planAttentionWorkspace() {
    size_t bytes = 0;
    for (const plan::Op *op : plan::each(program_.ops()))
      if (const plan::Attention *a = op->op_as_Attention())
        bytes = std::max(bytes, k::attention_workspace_bytes(plan_.root().limits()->max_batched_tokens(),
                                                             static_cast<int>(plan_.root().limits()->max_num_seqs()),
                                                             static_cast<int>(a->q_heads()), static_cast<int>(a->head_dim())));
    DeviceMemory memory(bytes, "the workspace of attention");
    LLMRT_CHECK(cudaMemset(memory.data(), 0, bytes));
    attention_workspace_ = memory.data();
    out_.owned_.push_back(std::move(memory));
  }

  k::KvPool pool(uint32_t layer, int kv_heads, int head_dim) const {
    const plan::KvCache &kv = *program_.kv();
    k::KvPool pool;
    const uint64_t layer_bytes = uint64_t(plan_.root().limits()->num_pages()) * kv.layer_page_bytes();
    pool.base = bases_.kv + layer * layer_bytes;
    pool.page_stride_bytes = static_cast<int64_t>(kv.layer_page_bytes());
    pool.type = type(kv.dtype());
    pool.kv_heads = kv_heads;
    pool.page_size = static_cast<int>(plan_.root().limits()->page_size());
    pool.head_dim = head_dim;
    return pool;
  }

  k::KvAppend appendCall(const plan::KvAppend &o) const {
    const Operand key = operand(o.k()), value = operand(o.v());
    return {pool(o.layer(), static_cast<int>(o.kv_heads()), static_cast<int>(o.head_dim())),
            key.data, value.data, key.ld, value.ld, nullptr, 0, key.type};
  }

  void push(std::function<void(const OpContext &)> op) { out_.ops_.push_back(std::move(op)); }

  // The op at `index`; null past the end.
  const plan::Op *opAt(uint32_t index) const { return index < plan::size_of(program_.ops()) ? program_.ops()->Get(index) : nullptr; }

  // The product at `op` with its neighbours, which ask it whether they have anything to do.
  struct Product {
    Neighbours neighbours;
    std::shared_ptr<const FusedProduct> call;
  };
  const Product &product(uint32_t op);
  std::shared_ptr<const FusedProduct> productBefore(); // the one that the current op follows as a neighbour; null: none
  std::shared_ptr<const FusedProduct> productAfter();  // the one whose norm the current op is

  void add(const plan::Op &op);
  const k::Rope &ropeCall(uint32_t op);
  void addRope(const plan::Rope &o);
  void addAttention(const plan::Attention &o);
  void addComm(const plan::Op &op);
  void addSum(const plan::AllReduce &o);
  const plan::AddRmsNorm *normOfSum(const plan::AllReduce &o, uint32_t at) const;
  k::AddRmsNorm normCall(const plan::AddRmsNorm &o);

  const plan::LoadedPlan &plan_;
  const plan::Program &program_;
  uint32_t rank_, index_ = 0;
  DeviceBases bases_;
  Program &out_;
  void *attention_workspace_ = nullptr;
  std::map<uint32_t, Product> products_;
  std::map<uint32_t, k::Rope> ropes_;
};

const ProgramBuilder::Product &ProgramBuilder::product(uint32_t op) {
  if (const auto known = products_.find(op); known != products_.end())
    return known->second;
  const uint32_t asked = std::exchange(index_, op); // of which refuse() speaks
  const plan::Linear &o = *program_.ops()->Get(op)->op_as_Linear();
  const Neighbours n = neighbours_of(plan_, rank_, op);
  const Operand out = operand(o.out()), in = operand(o.input()), result = operand(n.result);
  ProductParts parts;
  parts.linear = {out.data, out.ld, in.data, in.ld, weightData(o.weight()), vectorF32(o.bias()), 0, out.cols, in.cols,
                  in.type, type(weight(o.weight()).dtype()), out.type};
  // Plans from before they said so leave 0, and few rows are never the library's.
  parts.rows = {o.stream_rows() ? int64_t{o.stream_rows()} : k::kSkinnyMaxRows, o.wide_rows(), o.fused_rows()};
  parts.bias_like_out = biasLike(o.bias(), out.type);
  parts.result = result.data, parts.ld_result = result.ld;
  parts.input_apart = n.input_apart, parts.norm_apart = n.norm_apart;
  if (n.norm) {
    const Operand rows = operand(n.norm_rows);
    parts.norm_rows = rows.data, parts.ld_norm_rows = rows.ld;
    if (const plan::AddRmsNorm *sum = opAt(*n.norm)->op_as_AddRmsNorm()) {
      parts.norm = vectorF32(sum->weight()), parts.eps = sum->eps(), parts.norm_offset = sum->weight_offset();
      const plan::AllReduce *reduce = *n.norm > 0 ? opAt(*n.norm - 1)->op_as_AllReduce() : nullptr;
      parts.norm_is_free = reduce && normOfSum(*reduce, *n.norm - 1) == sum;
    } else {
      const plan::RmsNorm *norm = opAt(*n.norm)->op_as_RmsNorm();
      parts.norm = vectorF32(norm->weight()), parts.eps = norm->eps(), parts.norm_offset = norm->weight_offset();
    }
  }
  parts.add = n.add.has_value();
  if (n.gate)
    parts.gate = activation(opAt(*n.gate)->op_as_GatedAct()->act());
  if (n.rope)
    parts.rope = ropeCall(*n.rope), parts.append = appendCall(*opAt(*n.rope + 1)->op_as_KvAppend());
  index_ = asked;
  return products_[op] = {n, std::make_shared<const FusedProduct>(parts)};
}

std::shared_ptr<const FusedProduct> ProgramBuilder::productBefore() {
  if (index_ == 0 || !opAt(index_ - 1)->op_as_Linear())
    return nullptr;
  const Product &p = product(index_ - 1);
  return p.neighbours.add == index_ || p.neighbours.gate == index_ || p.neighbours.rope == index_ ? p.call : nullptr;
}

std::shared_ptr<const FusedProduct> ProgramBuilder::productAfter() {
  const plan::Op *next = opAt(index_ + 1);
  if (!next || !next->op_as_Linear())
    return nullptr;
  const Product &p = product(index_ + 1);
  return p.neighbours.norm == index_ ? p.call : nullptr;
}

const k::Rope &ProgramBuilder::ropeCall(uint32_t op) {
  if (const auto known = ropes_.find(op); known != ropes_.end())
    return known->second;
  const plan::Rope &o = *program_.ops()->Get(op)->op_as_Rope();
  const plan::RopeTable &table = *plan_.root().rope_tables()->Get(o.table());
  const std::vector<float> frequencies(plan::each(table.inv_freq()).begin(), plan::each(table.inv_freq()).end());
  k::Rope call{};
  const Operand q = operand(o.q()), key = operand(o.k());
  call.q = q.data, call.ld_q = q.ld, call.k = key.data, call.ld_k = key.ld;
  call.inv_freq = upload(frequencies, "rope frequencies");
  call.q_norm = vectorF32(o.q_norm()), call.k_norm = vectorF32(o.k_norm());
  call.attention_factor = table.attention_factor(), call.eps = o.eps();
  call.q_heads = static_cast<int>(o.q_heads()), call.kv_heads = static_cast<int>(o.kv_heads());
  call.head_dim = static_cast<int>(o.head_dim()), call.rotary_dim = static_cast<int>(o.rotary_dim());
  call.interleaved = o.style() == plan::RopeStyle::Interleaved;
  call.act = q.type;
  return ropes_[op] = call;
}

void ProgramBuilder::addRope(const plan::Rope &o) {
  k::Rope call = ropeCall(index_);
  const auto before = productBefore();
  // Keys that go to the pages next are rotated on their way.
  const plan::Op *next = opAt(index_ + 1);
  const plan::KvAppend *append = next ? next->op_as_KvAppend() : nullptr;
  if (append && append->k()->buffer() == o.k()->buffer() && append->k()->col() == o.k()->col() &&
      append->k()->cols() == o.k()->cols() && append->kv_heads() == o.kv_heads() && append->head_dim() == o.head_dim()) {
    push([call, to = appendCall(*append), before](const OpContext &c) mutable {
      if (before && before->takes_next(c.shape.tokens))
        return;
      call.positions = c.inputs.positions();
      to.slot_mapping = c.inputs.slot_mapping();
      call.T = to.T = c.shape.tokens;
      k::rope_append(call, to, c.stream);
    });
    push([](const OpContext &) {}); // the append
    ++index_;
    return;
  }
  push([call](const OpContext &c) mutable {
    call.positions = c.inputs.positions();
    call.T = c.shape.tokens;
    k::rope(call, c.stream);
  });
}

void ProgramBuilder::addAttention(const plan::Attention &o) {
  const Operand q = operand(o.q()), out = operand(o.out());
  if (o.head_dim() > 256)
    refuse("head_dim " + std::to_string(o.head_dim()) + " is more than the 256 of the CUDA kernels");
  k::Attention call{};
  call.out = out.data, call.ld_out = out.ld, call.q = q.data, call.ld_q = q.ld;
  call.pool = pool(o.layer(), static_cast<int>(o.kv_heads()), static_cast<int>(o.head_dim()));
  std::vector<uint16_t> map(plan::each(o.kv_head_of_q()).begin(), plan::each(o.kv_head_of_q()).end());
  for (uint32_t kv = 0; kv < o.kv_heads(); ++kv)
    call.max_group = std::max(call.max_group, static_cast<int>(std::count(map.begin(), map.end(), kv)));
  if (!std::is_sorted(map.begin(), map.end()))
    refuse("query heads of one KV head are not neighbours");
  call.kv_head_of_q = upload(map, "the map of query heads");
  call.q_heads = static_cast<int>(o.q_heads());
  call.scale = o.scale(), call.window = static_cast<int>(o.window()), call.softcap = o.softcap();
  call.act = q.type;
  call.workspace = attention_workspace_;
  push([call](const OpContext &c) mutable {
    call.seq_starts = c.inputs.seq_starts();
    call.context_lens = c.inputs.context_lens();
    call.page_table = c.inputs.page_table();
    call.page_table_stride = c.inputs.page_table_stride();
    call.T = c.shape.tokens, call.S = c.shape.seqs;
    call.max_query = c.shape.max_query, call.max_context = c.shape.max_context;
    k::attention(call, c.stream);
  });
}

// A sum, with the norm that follows it and is its only reader: small ones carry the norm along.
void ProgramBuilder::addSum(const plan::AllReduce &o) {
  out_.has_collectives_ = true;
  const Operand data = operand(o.data());
  const auto part = [data](const StepShape &shape) {
    return DevicePart{data.data, data.ld, data.count(shape), data.cols, data.type};
  };
  SumNorm norm;
  k::AddRmsNorm after{};
  if (const plan::AddRmsNorm *next = normOfSum(o, index_)) {
    after = normCall(*next);
    norm = {after.out, after.residual, static_cast<const float *>(after.weight), after.ld_out, after.ld_residual, after.eps,
            after.weight_offset};
  }
  push([part, group = o.group(), seq = o.seq(), limits = PushLimits{o.one_shot_bytes(), o.two_shot_bytes()}, norm, after](const OpContext &c) mutable {
    const DevicePart rows = part(c.shape);
    if (rows.rows != 0 && c.link->pushes(rows, limits))
      return c.link->all_reduce_pushed(seq, rows, limits, norm, c.stream);
    c.link->all_reduce(group, seq, rows, c.stream);
    if (after.out) {
      after.T = rows.rows;
      k::add_rms_norm(after, c.stream);
    }
  });
  if (after.out) {
    ++index_;
    push([](const OpContext &) {}); // the norm's place
  }
}

// The op after the sum at index `at`, where it is a norm that adds the sum to a residual and nobody else reads the sum.
const plan::AddRmsNorm *ProgramBuilder::normOfSum(const plan::AllReduce &o, uint32_t at) const {
  const plan::Op *after = opAt(at + 1);
  const plan::AddRmsNorm *next = (o.one_shot_bytes() != 0 || o.two_shot_bytes() != 0) && after ? after->op_as_AddRmsNorm() : nullptr;
  const plan::View &sum = *o.data();
  if (!next || next->input()->buffer() != sum.buffer() || next->input()->col() != sum.col() ||
      next->input()->cols() != sum.cols() || next->residual()->buffer() == sum.buffer() || next->out()->buffer() == sum.buffer())
    return nullptr;
  return read_after(plan_, rank_, sum, at + 1) ? nullptr : next;
}

k::AddRmsNorm ProgramBuilder::normCall(const plan::AddRmsNorm &o) {
  const Operand out = operand(o.out()), residual = operand(o.residual()), in = operand(o.input());
  return {out.data, out.ld, residual.data, residual.ld, in.data, in.ld, vectorF32(o.weight()), 0, out.cols,
          o.eps(), o.weight_offset(), out.type};
}

void ProgramBuilder::addComm(const plan::Op &op) {
  if (plan_.num_ranks() == 1)
    refuse("a plan of one rank has nobody to communicate with: compile the plan again");
  const bool transfer = op.op_type() == plan::OpKind::Send || op.op_type() == plan::OpKind::Recv;
  (transfer ? out_.has_transfers_ : out_.has_collectives_) = true;
  auto part = [](const Operand &o, const StepShape &shape) {
    return DevicePart{o.data, o.ld, o.count(shape), o.cols, o.type};
  };
  switch (op.op_type()) {
  case plan::OpKind::AllReduce:
    return addSum(*op.op_as_AllReduce());
  case plan::OpKind::AllGather: {
    const plan::AllGather &o = *op.op_as_AllGather();
    push([out = operand(o.out()), in = operand(o.input()), group = o.group(), seq = o.seq(), part](const OpContext &c) {
      c.link->gather(group, seq, -1, part(out, c.shape), part(in, c.shape), c.stream);
    });
    return;
  }
  case plan::OpKind::Gather: {
    const plan::Gather &o = *op.op_as_Gather();
    const Operand out = o.out() ? operand(o.out()) : Operand(), in = operand(o.input());
    if (const auto first = first_own_logit(plan_, rank_); first && index_ + 1 == plan::size_of(program_.ops()))
      out_.own_logits_ = {reinterpret_cast<const float *>(in.data), in.ld, in.cols, static_cast<int64_t>(*first)};
    push([out, in, group = o.group(), seq = o.seq(), root = static_cast<int>(o.root()), part](const OpContext &c) {
      c.link->gather(group, seq, root, part(out, c.shape), part(in, c.shape), c.stream);
    });
    return;
  }
  case plan::OpKind::Send: {
    const plan::Send &o = *op.op_as_Send();
    push([in = operand(o.input()), peer = o.peer(), seq = o.seq(), part](const OpContext &c) {
      c.link->send(peer, seq, part(in, c.shape), c.stream);
    });
    return;
  }
  default: {
    const plan::Recv &o = *op.op_as_Recv();
    push([out = operand(o.out()), peer = o.peer(), seq = o.seq(), part](const OpContext &c) {
      c.link->recv(peer, seq, part(out, c.shape), c.stream);
    });
    return;
  }
  }
}

void ProgramBuilder::add(const plan::Op &op) {
  switch (op.op_type()) {
  case plan::OpKind::Embedding: {
    const plan::Embedding &o = *op.op_as_Embedding();
    const Operand out = operand(o.out());
    k::Embedding call{out.data, out.ld, weightData(o.table()), nullptr, 0, out.cols, static_cast<int64_t>(o.vocab_begin()),
                      static_cast<int64_t>(o.vocab_count()), o.scale(), out.type, type(weight(o.table()).dtype())};
    push([call](const OpContext &c) mutable {
      call.ids = c.inputs.ids(), call.T = c.shape.tokens;
      k::embedding(call, c.stream);
    });
    return;
  }
  case plan::OpKind::RmsNorm: {
    const plan::RmsNorm &o = *op.op_as_RmsNorm();
    const Operand out = operand(o.out()), in = operand(o.input());
    k::RmsNorm call{out.data, out.ld, in.data, in.ld, vectorF32(o.weight()), 0, out.cols, o.eps(), o.weight_offset(), out.type};
    push([call, in, after = productAfter()](const OpContext &c) mutable {
      call.T = in.count(c.shape);
      if (!after || !after->takes_norm(call.T))
        k::rms_norm(call, c.stream);
    });
    return;
  }
  case plan::OpKind::AddRmsNorm: {
    const plan::AddRmsNorm &o = *op.op_as_AddRmsNorm();
    push([call = normCall(o), in = operand(o.input()), before = productBefore(), after = productAfter()](const OpContext &c) mutable {
      call.T = in.count(c.shape);
      const bool added = before && before->takes_next(call.T), normed = after && after->takes_norm(call.T);
      if (!added && !normed)
        k::add_rms_norm(call, c.stream);
      else if (!added)
        k::add({call.residual, call.ld_residual, call.input, call.ld_input, call.T, call.H, call.act}, c.stream);
      else if (!normed)
        k::rms_norm({call.out, call.ld_out, call.residual, call.ld_residual, call.weight, call.T, call.H, call.eps,
                     call.weight_offset, call.act}, c.stream);
    });
    return;
  }
  case plan::OpKind::Add: {
    const plan::Add &o = *op.op_as_Add();
    const Operand residual = operand(o.residual()), in = operand(o.input());
    k::Add call{residual.data, residual.ld, in.data, in.ld, 0, in.cols, in.type};
    push([call, in, before = productBefore()](const OpContext &c) mutable {
      call.T = in.count(c.shape);
      if (!before || !before->takes_next(call.T))
        k::add(call, c.stream);
    });
    return;
  }
  case plan::OpKind::Linear: {
    push([product = product(index_).call, in = operand(op.op_as_Linear()->input())](const OpContext &c) {
      product->run(in.count(c.shape), c);
    });
    return;
  }
  case plan::OpKind::Rope:
    return addRope(*op.op_as_Rope());
  case plan::OpKind::KvAppend: {
    push([call = appendCall(*op.op_as_KvAppend())](const OpContext &c) mutable {
      call.slot_mapping = c.inputs.slot_mapping(), call.T = c.shape.tokens;
      k::kv_append(call, c.stream);
    });
    return;
  }
  case plan::OpKind::Attention:
    return addAttention(*op.op_as_Attention());
  case plan::OpKind::GatedAct: {
    const plan::GatedAct &o = *op.op_as_GatedAct();
    const Operand out = operand(o.out()), gate = operand(o.gate()), up = operand(o.up());
    k::GatedAct call{out.data, out.ld, gate.data, up.data, gate.ld, up.ld, 0, out.cols, activation(o.act()), out.type};
    push([call, out, before = productBefore()](const OpContext &c) mutable {
      call.T = out.count(c.shape);
      if (!before || !before->takes_next(call.T))
        k::gated_act(call, c.stream);
    });
    return;
  }
  case plan::OpKind::SelectRows: {
    const plan::SelectRows &o = *op.op_as_SelectRows();
    const Operand out = operand(o.out()), in = operand(o.input());
    k::SelectRows call{out.data, out.ld, in.data, in.ld, nullptr, 0, in.cols, in.type};
    push([call](const OpContext &c) mutable {
      call.rows = c.inputs.logits_rows(), call.R = c.shape.rows;
      k::select_rows(call, c.stream);
    });
    return;
  }
  case plan::OpKind::AllReduce:
  case plan::OpKind::AllGather:
  case plan::OpKind::Gather:
  case plan::OpKind::Send:
  case plan::OpKind::Recv:
    return addComm(op);
  default:
    refuse("this llmrt does not know the op: update llmrt, or compile the plan with its own llmc");
  }
}

Program::Program(const plan::LoadedPlan &plan, uint32_t rank, const DeviceBases &bases) : rank_(rank) {
  ProgramBuilder(plan, rank, bases, *this).build();
}

void Program::run(const OpContext &context) const {
  const size_t end = ops_.size() - (own_logits_.data ? 1 : 0);
  for (size_t op = 0; op < end; ++op)
    run(op, context);
  LLMRT_CHECK(cudaGetLastError());
}

void Program::gather_logits(const OpContext &context) const {
  if (own_logits_.data)
    run(ops_.size() - 1, context);
}

void Program::run(size_t op, const OpContext &context) const {
  const ObservedSpan span(context.observer, context.step, rank_, static_cast<uint32_t>(op));
  ops_[op](context);
}

size_t Program::bytes() const {
  size_t bytes = 0;
  for (const DeviceMemory &memory : owned_)
    bytes += memory.size();
  return bytes;
}

} // namespace llmrt::exec::cuda
