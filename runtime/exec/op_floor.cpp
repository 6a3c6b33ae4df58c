#include "runtime/exec/op_floor.h"

#include "runtime/plan/access.h"

#include <algorithm>
#include <set>

namespace llmrt::exec {

double floor_seconds(const OpCost &cost, const Ceilings &ceilings, double share) {
  return std::max(static_cast<double>(cost.bytes()) / (ceilings.read_bytes_per_s * share),
                  static_cast<double>(cost.flops) / (ceilings.matmul_flops_per_s * share));
}

double serial_floor_seconds(const plan::LoadedPlan &plan, const StepBatch &step, const Ceilings &ceilings,
                            const std::vector<int> &placement) {
  const std::set<int> devices(placement.begin(), placement.end());
  const double share = 1.0 / static_cast<double>(std::max<size_t>(1, devices.size()));
  double sum = 0;
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank)
    for (uint32_t op = 0; op < plan::size_of(plan.program(rank).ops()); ++op)
      sum += floor_seconds(cost_of(plan, rank, op, step), ceilings, share);
  return sum * share;
}

StepBatch decode_shape(const plan::LoadedPlan &plan, int batch, int context) {
  const int vocab = static_cast<int>(std::min<uint64_t>(plan.root().model()->vocab(), INT32_MAX));
  StepBatch step;
  step.seq_starts = {0};
  for (int seq = 0; seq < batch; ++seq) {
    step.ids.push_back(seq % vocab);
    step.seq_starts.push_back(seq + 1);
    step.context_lens.push_back(context);
    step.logits_rows.push_back(seq);
  }
  return step;
}

} // namespace llmrt::exec
