#include "tools/llmrt/bench_floor.h"

#include "runtime/plan/access.h"

namespace llmrt::tool {

Floor floor_of(const plan::Plan &plan) {
  Floor floor;
  for (const plan::Program *program : plan::each(plan.programs())) {
    for (const plan::Op *op : plan::each(program->ops())) {
      if (const plan::Linear *linear = op->op_as_Linear()) {
        const plan::Weight &weight = *program->weights()->Get(linear->weight());
        const double elements = static_cast<double>(weight.rows()) * static_cast<double>(weight.cols());
        floor.weight_bytes += static_cast<double>(weight.bytes());
        const bool logits = program->buffers()->Get(linear->out()->buffer())->rows() == plan::Rows::Logits;
        (logits ? floor.flops_per_row : floor.flops_per_token) += 2 * elements;
      } else if (const plan::Attention *attention = op->op_as_Attention()) {
        floor.attention_flops += 4.0 * attention->q_heads() * attention->head_dim();
      }
    }
    if (const plan::KvCache *kv = program->kv())
      floor.kv_bytes_per_token += static_cast<double>(kv->page_bytes()) / plan.limits()->page_size();
  }
  return floor;
}

} // namespace llmrt::tool
