#include "runtime/exec/op_cost.h"

#include "runtime/plan/access.h"

#include <algorithm>
#include <unordered_set>

namespace llmrt::exec {

namespace {

class Counter {
public:
  Counter(const plan::LoadedPlan &plan, uint32_t rank, const StepBatch &batch)
      : plan_(plan), program_(plan.program(rank)), rank_(rank), batch_(batch) {}

  OpCost of(const plan::Op &op) const {
    OpCost cost;
    for (const plan::ViewOperand &operand : plan::operands_of(op))
      if (operand.view)
        cost.activation_bytes += view_bytes(op, *operand.view) * (operand.access == plan::Access::ReadWrite ? 2 : 1);
    if (cost.activation_bytes == 0)
      return cost; // no rows: nothing runs
    const plan::Operands operands = plan::operands_of(op);
    for (uint32_t i = 0; i < operands.num_weights; ++i)
      if (const int64_t weight = operands.weights[i].index; weight >= 0)
        cost.weight_bytes += program_.weights()->Get(static_cast<uint32_t>(weight))->bytes();
    switch (op.op_type()) {
    case plan::OpKind::Embedding:
      cost.weight_bytes = table_bytes(*op.op_as_Embedding());
      break;
    case plan::OpKind::Linear: {
      const plan::Linear &linear = *op.op_as_Linear();
      const plan::Weight &weight = *program_.weights()->Get(linear.weight());
      cost.flops = 2 * rows(*linear.out()) * weight.rows() * weight.cols();
      break;
    }
    case plan::OpKind::KvAppend: {
      const plan::KvAppend &append = *op.op_as_KvAppend();
      cost.kv_bytes = batch_.ids.size() * token_kv_bytes(append.kv_heads(), append.head_dim());
      break;
    }
    case plan::OpKind::Attention:
      count_attention(*op.op_as_Attention(), cost);
      break;
    default:
      break;
    }
    cost.link_bytes = link_bytes(op);
    return cost;
  }

private:
  uint64_t rows(const plan::View &view) const {
    return plan_.buffer(rank_, view).rows() == plan::Rows::Tokens ? batch_.ids.size() : batch_.logits_rows.size();
  }

  uint64_t view_bytes(const plan::Op &op, const plan::View &view) const {
    // select_rows reads the rows that it writes, no more.
    const uint64_t count = op.op_type() == plan::OpKind::SelectRows ? batch_.logits_rows.size() : rows(view);
    return count * view.cols() * plan::block_bytes(plan_.buffer(rank_, view).dtype());
  }

  uint64_t table_bytes(const plan::Embedding &op) const {
    std::unordered_set<int32_t> met;
    for (const int32_t id : batch_.ids)
      if (static_cast<uint64_t>(id) >= op.vocab_begin() && static_cast<uint64_t>(id) - op.vocab_begin() < op.vocab_count())
        met.insert(id);
    const plan::Weight &table = *program_.weights()->Get(op.table());
    uint64_t bytes = 0;
    return plan::row_major_bytes(table.dtype(), met.size(), table.cols(), bytes) ? bytes : 0;
  }

  // Key and value of one token, of a layer.
  uint64_t token_kv_bytes(uint32_t kv_heads, uint32_t head_dim) const {
    return 2 * uint64_t{kv_heads} * head_dim * plan::block_bytes(program_.kv()->dtype());
  }

  // A new token at position p sees the p + 1 tokens up to itself, or the last `window` of them. Keys that several new tokens
  // of a sequence see are read once.
  void count_attention(const plan::Attention &op, OpCost &cost) const {
    uint64_t pairs = 0, keys = 0;
    for (size_t seq = 0; seq < batch_.context_lens.size(); ++seq) {
      const uint64_t context = static_cast<uint64_t>(batch_.context_lens[seq]);
      const uint64_t fresh = static_cast<uint64_t>(batch_.seq_starts[seq + 1] - batch_.seq_starts[seq]);
      const uint64_t window = op.window() ? op.window() : context;
      keys += std::min(context, window + fresh - 1);
      for (uint64_t position = context - fresh; position < context; ++position)
        pairs += std::min(position + 1, window);
    }
    cost.kv_bytes = keys * token_kv_bytes(op.kv_heads(), op.head_dim());
    cost.flops = 4 * pairs * op.q_heads() * op.head_dim(); // q · k and p · v
  }

  uint64_t link_bytes(const plan::Op &op) const {
    const plan::CommInfo comm = plan::comm_of(op);
    if (!comm.is_comm || !comm.payload || op.op_type() == plan::OpKind::Recv)
      return 0;
    const uint64_t payload = view_bytes(op, *comm.payload);
    if (comm.is_transfer)
      return payload;
    const plan::Group &group = *plan_.root().groups()->Get(comm.group);
    const uint64_t size = group.ranks()->size();
    switch (op.op_type()) {
    case plan::OpKind::AllReduce:
      return 2 * payload * (size - 1) / size;
    case plan::OpKind::AllGather:
      return payload * (size - 1);
    default:
      return group.ranks()->Get(comm.root) == rank_ ? 0 : payload;
    }
  }

  const plan::LoadedPlan &plan_;
  const plan::Program &program_;
  uint32_t rank_;
  const StepBatch &batch_;
};

} // namespace

OpCost &OpCost::operator+=(const OpCost &other) {
  weight_bytes += other.weight_bytes;
  activation_bytes += other.activation_bytes;
  kv_bytes += other.kv_bytes;
  flops += other.flops;
  link_bytes += other.link_bytes;
  return *this;
}

OpCost cost_of(const plan::LoadedPlan &plan, uint32_t rank, uint32_t op, const StepBatch &batch) {
  return Counter(plan, rank, batch).of(*plan.program(rank).ops()->Get(op));
}

std::string weight_role(std::string_view name) {
  constexpr std::string_view suffix = ".weight";
  if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix)
    name.remove_suffix(suffix.size());
  return std::string(name.substr(name.rfind('.') + 1)); // npos + 1 is 0
}

std::string op_title(const plan::Program &program, uint32_t index) {
  const plan::Op &op = *program.ops()->Get(index);
  const std::string name = plan::name_of(op.op_type());
  const plan::CommInfo comm = plan::comm_of(op);
  if (comm.is_transfer || op.op_type() == plan::OpKind::Rope || (comm.is_comm && index == 0))
    return name;
  const plan::Operands operands = plan::operands_of(*program.ops()->Get(comm.is_comm ? index - 1 : index));
  if (operands.num_weights == 0 || operands.weights[0].index < 0)
    return name;
  const plan::Weight &weight = *program.weights()->Get(static_cast<uint32_t>(operands.weights[0].index));
  return name + " " + weight_role(plan::view_of(weight.name()));
}

} // namespace llmrt::exec
