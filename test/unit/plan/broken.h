// Shared by the verifier's tests: a valid plan, one change, and the check and words with which it must be refused.
#pragma once

#include "runtime/plan/verify.h"
#include "test/unit/plan/plan_builder.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace llmrt::plan::testing {

inline std::string problems(const PlanT &plan) { return to_string(verify(load(plan)->root())); }

// Problems of the plan after `change`. The change alone must be what is refused, so the plan before it is checked too.
inline std::string broken(const std::function<void(PlanT &)> &change, const TinySpec &spec = {}) {
  PlanT plan = build_tiny_plan(spec);
  EXPECT_EQ(problems(plan), "");
  change(plan);
  return problems(plan);
}

// The first op of a kind in a rank's program, as its index and its table.
template <typename OpTable> uint32_t find_op(const PlanT &plan, uint32_t rank, uint32_t nth = 0) {
  constexpr OpKind kind = OpKindUnionTraits<OpTable>::enum_value;
  const auto &ops = plan.programs[rank]->ops;
  for (uint32_t i = 0; i < ops.size(); ++i)
    if (ops[i]->op.type == kind && nth-- == 0)
      return i;
  ADD_FAILURE() << "rank " << rank << " has no such op";
  return 0;
}
template <typename OpTable> OpTable &op_of(PlanT &plan, uint32_t rank, uint32_t nth = 0) {
  return *static_cast<OpTable *>(plan.programs[rank]->ops[find_op<OpTable>(plan, rank, nth)]->op.value);
}

inline WeightT &weight_of(PlanT &plan, uint32_t rank, const std::string &name) {
  for (auto &w : plan.programs[rank]->weights)
    if (w->name == name)
      return *w;
  ADD_FAILURE() << "rank " << rank << " has no weight " << name;
  return *plan.programs[rank]->weights[0];
}

inline BufferT &buffer_of(PlanT &plan, uint32_t rank, const std::string &name) {
  for (auto &b : plan.programs[rank]->buffers)
    if (b->name == name)
      return *b;
  ADD_FAILURE() << "rank " << rank << " has no buffer " << name;
  return *plan.programs[rank]->buffers[0];
}

inline uint64_t &ledger_line(PlanT &plan, uint32_t rank, const std::string &name) {
  for (auto &line : plan.programs[rank]->ledger->lines)
    if (line->name == name)
      return line->bytes;
  ADD_FAILURE() << "no ledger line " << name;
  return plan.programs[rank]->ledger->lines[0]->bytes;
}

// `text` names the check and all the words; every problem is printed when not.
#define EXPECT_REFUSED(text, check, ...)                                                                             \
  do {                                                                                                               \
    std::string refused_text = (text);                                                                               \
    EXPECT_NE(refused_text.find(std::string(check) + ": "), std::string::npos) << refused_text;                      \
    for (const char *word : {__VA_ARGS__})                                                                           \
      EXPECT_NE(refused_text.find(word), std::string::npos) << "no '" << word << "' in:\n" << refused_text;         \
  } while (false)

} // namespace llmrt::plan::testing
