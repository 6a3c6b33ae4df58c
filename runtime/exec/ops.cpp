// From a prepared op and a step to one kernel call or one communication. Ops over no rows do nothing; since the row
// counts of a step are the same on every rank, the ranks agree about that.
#include "runtime/exec/ops.h"

namespace llmrt::exec {

namespace {

struct Runner {
  const Step &step;
  const RankContext &on;

  int64_t rows(const Matrix &matrix) const { return step.rows(matrix.rows); }
  comm::Block block(const Bytes &bytes) const {
    return {bytes.data, static_cast<size_t>(step.rows(bytes.rows)), bytes.row_bytes, bytes.stride};
  }
  comm::ConstBlock const_block(const Bytes &bytes) const {
    return {bytes.data, static_cast<size_t>(step.rows(bytes.rows)), bytes.row_bytes, bytes.stride};
  }

  void operator()(EmbeddingOp &op) const {
    op.call.ids = step.batch->ids.data();
    op.call.T = step.tokens();
    cpu::embedding(on.team, op.call);
  }
  void operator()(RmsNormOp &op) const {
    if (const int64_t n = rows(op.out))
      cpu::rms_norm(on.team, op.out.data, op.out.stride, op.input.data, op.input.stride, op.weight, op.eps,
                    op.weight_offset, n, op.out.cols);
  }
  void operator()(AddRmsNormOp &op) const {
    if (const int64_t n = rows(op.out))
      cpu::add_rms_norm(on.team, op.out.data, op.out.stride, op.residual.data, op.residual.stride, op.input.data,
                        op.input.stride, op.weight, op.eps, op.weight_offset, n, op.out.cols);
  }
  void operator()(AddOp &op) const {
    if (const int64_t n = rows(op.residual))
      cpu::add(on.team, op.residual.data, op.residual.stride, op.residual.data, op.residual.stride, op.input.data,
               op.input.stride, n, op.residual.cols);
  }
  void operator()(LinearOp &op) const {
    op.call.M = step.rows(op.rows);
    if (op.call.M != 0)
      cpu::linear(on.team, op.call);
  }
  void operator()(RopeOp &op) const {
    op.q.T = op.k.T = step.tokens();
    cpu::rope(on.team, op.q);
    cpu::rope(on.team, op.k);
  }
  void operator()(KvAppendOp &op) const {
    cpu::kv_append(on.team, op.pool, op.k.data, op.k.stride, op.v.data, op.v.stride, step.batch->slot_mapping.data(),
                   step.tokens());
  }
  void operator()(AttentionOp &op) const {
    op.call.kv_head_of_q = op.kv_head_of_q.data();
    op.call.num_seqs = static_cast<int>(step.seqs());
    op.call.seq_starts = step.batch->seq_starts.data();
    op.call.context_lens = step.batch->context_lens.data();
    op.call.page_table = step.page_table.data();
    op.call.page_table_stride = step.page_stride;
    cpu::paged_attention(on.team, op.call);
  }
  void operator()(GatedActOp &op) const {
    if (const int64_t n = rows(op.out))
      cpu::gated_act(on.team, op.act, op.out.data, op.out.stride, op.gate.data, op.gate.stride, op.up.data,
                     op.up.stride, n, op.out.cols);
  }
  void operator()(SelectRowsOp &op) const {
    if (const int64_t n = step.logits_rows())
      cpu::select_rows(on.team, op.out.data, op.out.stride, op.input.data, op.input.stride,
                       step.batch->logits_rows.data(), n, op.out.cols);
  }
  void operator()(AllReduceOp &op) const {
    on.comm.all_reduce(op.group, op.seq, op.data.data, static_cast<size_t>(rows(op.data)),
                       static_cast<size_t>(op.data.cols), static_cast<size_t>(op.data.stride));
  }
  void operator()(AllGatherOp &op) const {
    on.comm.all_gather(op.group, op.seq, block(op.out), const_block(op.input), op.part_bytes);
  }
  void operator()(GatherOp &op) const {
    on.comm.gather(op.group, op.seq, op.root, op.out.data ? block(op.out) : comm::Block{}, const_block(op.input),
                   op.part_bytes);
  }
  void operator()(SendOp &op) const { on.comm.send(op.peer, op.seq, const_block(op.input)); }
  void operator()(RecvOp &op) const { on.comm.recv(op.peer, op.seq, block(op.out)); }
  void operator()(WidenOp &op) const {
    for (int64_t row = 0, n = rows(op.shadow); row < n; ++row)
      cpu::to_f32(op.shadow.data + row * op.shadow.stride, op.view.data + static_cast<size_t>(row) * op.view.stride,
                  op.dtype, op.shadow.cols);
  }
  void operator()(NarrowOp &op) const {
    for (int64_t row = 0, n = rows(op.shadow); row < n; ++row)
      cpu::from_f32(op.view.data + static_cast<size_t>(row) * op.view.stride, op.dtype,
                    op.shadow.data + row * op.shadow.stride, op.shadow.cols);
  }
};

} // namespace

void run(PreparedOp &op, const Step &step, const RankContext &context) { std::visit(Runner{step, context}, op); }

void run(const RopeAngles &angles, const Step &step, const RankContext &context) {
  cpu::rope_table(context.team, angles.table, step.batch->positions.data(), angles.inv_freq.data(),
                  angles.attention_factor, step.tokens(), angles.rotary_dim);
}

} // namespace llmrt::exec
