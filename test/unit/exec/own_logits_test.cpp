// Whose columns of the logits are where, and that ranks give the same answer where a program has been changed.
#include <gtest/gtest.h>

#include "runtime/exec/own_logits.h"
#include "test/unit/plan/plan_builder.h"

#include <utility>
#include <vector>

using namespace llmrt;
using namespace llmrt::exec;
using plan::testing::TinySpec;

namespace {

plan::PlanT tiny(uint32_t tp, uint32_t pp) {
  TinySpec spec;
  spec.tp = tp, spec.pp = pp;
  return plan::testing::build_tiny_plan(spec);
}

std::vector<std::optional<uint64_t>> all(const plan::PlanT &plan) {
  const auto loaded = plan::testing::load(plan);
  std::vector<std::optional<uint64_t>> result;
  for (uint32_t rank = 0; rank < loaded->num_ranks(); ++rank)
    result.push_back(first_own_logit(*loaded, rank));
  return result;
}

using Firsts = std::vector<std::optional<uint64_t>>;

TEST(OwnLogits, OneBehindTheOther) {
  EXPECT_EQ(all(tiny(1, 1)), Firsts({std::nullopt})); // nothing is gathered
  EXPECT_EQ(all(tiny(2, 1)), Firsts({0, 25}));        // 50 of the vocabulary
  EXPECT_EQ(all(tiny(2, 2)), Firsts({std::nullopt, std::nullopt, 0, 25}));
}

// A program that does not end with the gather keeps all ranks from leaving it out, whichever rank's it is.
TEST(OwnLogits, AllOrNone) {
  for (const size_t rank : {0, 1}) {
    plan::PlanT plan = tiny(2, 1);
    auto &ops = plan.programs[rank]->ops;
    ASSERT_NE(ops.back()->op.AsGather(), nullptr);
    std::swap(ops[ops.size() - 1], ops[ops.size() - 2]);
    EXPECT_EQ(all(plan), Firsts({std::nullopt, std::nullopt})) << "rank " << rank;
  }
  // Nor does a gather of something else.
  plan::PlanT plan = tiny(2, 1);
  auto &gather = *plan.programs[plan.output_rank]->ops.back()->op.AsGather();
  *gather.out = plan::View(gather.input->buffer(), 0, gather.out->cols());
  EXPECT_EQ(all(plan), Firsts({std::nullopt, std::nullopt}));
}

} // namespace
