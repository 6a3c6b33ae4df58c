// Sums over the ranks, since one machine holds them all.
#include "runtime/exec/host_memory.h"

#include <algorithm>
#include <string>

#include "runtime/exec/rank.h"
#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

bool stands_in(const plan::LoadedPlan &plan) {
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank)
    if (plan.root().topology()->devices()->Get(plan.program(rank).device())->kind() != plan::DeviceKind::Cpu)
      return true;
  return false;
}

HostMemory plan_host_memory(const plan::LoadedPlan &plan, uint64_t limit) {
  const plan::Limits &limits = *plan.root().limits();
  HostMemory memory;
  memory.num_pages = limits.num_pages();
  uint64_t touched = 0; // all but the KV pages, which are committed as they are used
  uint64_t page_bytes = 0;
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank) {
    memory.places.push_back(host_places(plan.program(rank)));
    touched += memory.places.back().bytes + plan.program(rank).arena_bytes();
    page_bytes += kv_page_bytes(plan, rank);
  }
  const std::string ranks = "the plan's " + std::to_string(plan.num_ranks()) + " ranks need ";
  if (touched > limit)
    throw Error(ranks + std::to_string(touched) + " bytes for weights and activations, and this machine gives the process " +
                std::to_string(limit) +
                ": use a smaller --dtype, model or --max-batched-tokens, or a machine with more memory");
  if (page_bytes == 0 || (!stands_in(plan) && memory.num_pages <= (limit - touched) / page_bytes))
    return memory;
  const uint64_t sequence = (uint64_t{limits.max_model_len()} + limits.page_size() - 1) / limits.page_size();
  const uint64_t room = (limit - touched) / 10 * 9 / page_bytes; // a tenth stays for scratch and the rest of the process
  if (room < std::min<uint64_t>(sequence, memory.num_pages))
    throw Error(ranks + std::to_string(touched) + " bytes for weights and activations and " +
                std::to_string(sequence * page_bytes) + " for the KV pages of one sequence of " +
                std::to_string(limits.max_model_len()) + " tokens, and this machine gives the process " +
                std::to_string(limit) + ": compile with a smaller --max-model-len, or use a machine with more memory");
  memory.num_pages = static_cast<uint32_t>(std::min({uint64_t{memory.num_pages}, sequence * limits.max_num_seqs(), room}));
  return memory;
}

} // namespace llmrt::exec
