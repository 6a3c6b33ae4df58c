#include "runtime/exec/cuda/program.h"

#include "runtime/exec/cuda/program_builder.h"

namespace llmrt::exec::cuda {

k::Activation activation(plan::Activation a) {
  return a == plan::Activation::Silu       ? k::Activation::silu
         : a == plan::Activation::GeluTanh ? k::Activation::gelu_tanh
                                           : k::Activation::gelu;
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
      if (before && before->takes_next(c.shape.tokens, c.shape))
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
  push([call, narrow = narrow_[index_]](const OpContext &c) mutable {
    if (narrow.takes(c.shape))
      return;
    call.seq_starts = c.inputs.seq_starts();
    call.context_lens = c.inputs.context_lens();
    call.page_table = c.inputs.page_table();
    call.page_table_stride = c.inputs.page_table_stride();
    call.T = c.shape.tokens, call.S = c.shape.seqs;
    call.max_query = c.shape.max_query, call.max_context = c.shape.max_context;
    k::attention(call, c.stream);
  });
}

k::AddRmsNorm ProgramBuilder::normCall(const plan::AddRmsNorm &o) {
  const Operand out = operand(o.out()), residual = operand(o.residual()), in = operand(o.input());
  return {out.data, out.ld, residual.data, residual.ld, in.data, in.ld, vectorF32(o.weight()), 0, out.cols,
          o.eps(), o.weight_offset(), out.type};
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
      if (!after || !after->takes_norm(call.T, c.shape))
        k::rms_norm(call, c.stream);
    });
    return;
  }
  case plan::OpKind::AddRmsNorm: {
    const plan::AddRmsNorm &o = *op.op_as_AddRmsNorm();
    push([call = normCall(o), in = operand(o.input()), before = productBefore(), after = productAfter()](const OpContext &c) mutable {
      call.T = in.count(c.shape);
      const bool added = before && before->takes_next(call.T, c.shape), normed = after && after->takes_norm(call.T, c.shape);
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
      if (!before || !before->takes_next(call.T, c.shape))
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
      if (!before || !before->takes_next(call.T, c.shape))
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
