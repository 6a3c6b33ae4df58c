// Products, and which ops before and behind them they take along.
#include "runtime/exec/cuda/program_builder.h"

namespace llmrt::exec::cuda {

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
  parts.rows = {o.stream_rows() ? int64_t{o.stream_rows()} : k::kSkinnyMaxRows, o.wide_rows(), o.fused_rows(), o.paired_rows()};
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
  return products_[op] = {n, std::make_shared<FusedProduct>(parts)};
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

} // namespace llmrt::exec::cuda
