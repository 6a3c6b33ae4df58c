// One test per proof: a valid plan is accepted, a plan broken in one way is refused with the sentence that says so.
#include "runtime/plan/verify.h"
#include "test/unit/plan/plan_builder.h"

#include <gtest/gtest.h>

using namespace llmrt::plan;
using namespace llmrt::plan::testing;

namespace {

std::string problems(const PlanT &plan) { return to_string(verify(load(plan)->root())); }

TEST(Verify, AcceptsValidPlans) {
  EXPECT_EQ(problems(build_tiny_plan()), "");
  for (uint32_t tp : {1, 2, 3, 4})
    for (uint32_t pp : {1, 2, 3, 4}) {
      TinySpec spec;
      spec.tp = tp;
      spec.pp = pp;
      EXPECT_EQ(problems(build_tiny_plan(spec)), "") << tp << " × " << pp;
      spec.tied = spec.qkv_bias = spec.o_bias = spec.qk_norm = true;
      spec.weight_dtype = DType::BF16;
      spec.linear_layout = Layout::Packed16;
      spec.weight_file = "weights.bin";
      EXPECT_EQ(problems(build_tiny_plan(spec)), "") << tp << " × " << pp;
    }
}

} // namespace
