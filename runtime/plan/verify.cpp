// The order of the proofs, and the collection of what they find.
#include "runtime/plan/verify.h"

#include "runtime/plan/verify_internal.h"

#include <algorithm>

namespace llmrt::plan {

void Reporter::add(const char *check, int64_t rank, int64_t index, const Op *op, std::string message) {
  if (++counts_[check] > kMost)
    return;
  Problem problem;
  problem.check = check;
  problem.rank = rank;
  problem.op = index;
  problem.op_name = op ? name_of(op->op_type()) : "";
  problem.message = std::move(message);
  problems_.push_back(std::move(problem));
}

std::vector<Problem> Reporter::finish() {
  for (const auto &[check, count] : counts_)
    if (count > kMost)
      problems_.push_back({check, -1, -1, "", cat(count - kMost, " more problems of this kind.")});
  return std::move(problems_);
}

std::string describe(const Program &program, const View &view) {
  return cat(quoted(program.buffers()->Get(view.buffer())->name()), "[", view.col(), ":",
             uint64_t(view.col()) + view.cols(), "]");
}

std::vector<Problem> verify(const Plan &plan) {
  Reporter report;
  verify_structure(plan, report);
  if (!report.empty())
    return report.finish();
  verify_limits(plan, report);
  verify_shapes(plan, report);
  verify_weights(plan, report);
  verify_buffers(plan, report);
  verify_memory(plan, report);
  verify_kv(plan, report);
  verify_dataflow(plan, report);
  verify_communication(plan, report);
  verify_topology(plan, report);
  return report.finish();
}

std::string to_string(const Problem &problem) {
  std::string where;
  if (problem.rank >= 0)
    where = cat("rank ", problem.rank, problem.op >= 0 ? ", " : ": ");
  if (problem.op >= 0)
    where += cat("op ", problem.op, problem.op_name.empty() ? "" : cat(" (", problem.op_name, ")"), ": ");
  return cat(where, problem.check, ": ", problem.message);
}

std::string to_string(const std::vector<Problem> &problems) {
  std::string text;
  for (const Problem &problem : problems)
    text += cat(text.empty() ? "" : "\n", to_string(problem));
  return text;
}

} // namespace llmrt::plan
