// Sums over ranks, gathers, and rows that stages pass on.
#include "runtime/exec/cuda/program_builder.h"
#include "runtime/exec/own_logits.h"

namespace llmrt::exec::cuda {

// Whether rows are of a form that pushed sums take along.
static bool inChunks(const Operand &o) {
  return k::one_shot_takes(o.cols, o.ld, o.type) && reinterpret_cast<uintptr_t>(o.data) % 16 == 0;
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
  const plan::AddRmsNorm *next = normOfSum(o, index_);
  if (next && inChunks(operand(next->residual())) && inChunks(operand(next->out()))) {
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

} // namespace llmrt::exec::cuda
