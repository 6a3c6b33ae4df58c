// Valid plans with a few numbers overwritten: most stay well-formed buffers, so this reaches the proofs that random
// bytes do not. Nothing may crash; under asan and ubsan that means something.
#include "runtime/plan/dump.h"
#include "runtime/plan/verify.h"
#include "runtime/support/error.h"
#include "test/unit/plan/plan_builder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace llmrt::plan;
using namespace llmrt::plan::testing;

TEST(PlanMutation, OverwrittenNumbers) {
  std::vector<std::vector<uint8_t>> seeds;
  for (uint32_t tp : {1, 2, 4})
    for (uint32_t pp : {1, 2}) {
      TinySpec spec;
      spec.tp = tp;
      spec.pp = spec.layers = pp;
      spec.tied = tp == 2;
      spec.o_bias = true;
      seeds.push_back(pack(build_tiny_plan(spec)));
    }
  const uint64_t values[] = {0,          1,          2,           7,         255,              256,       65535,     65536,
                             0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, UINT64_MAX - 255, UINT64_MAX};
  std::mt19937_64 random(11);
  size_t loaded = 0, past_structure = 0;
  for (int round = 0; round < 15000; ++round) {
    std::vector<uint8_t> bytes = seeds[random() % seeds.size()];
    for (uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      size_t width = size_t(1) << (random() % 4), at = 8 + random() % (bytes.size() - 16);
      at -= at % width;
      uint64_t value = random() % 3 ? values[random() % std::size(values)] : random() % 64;
      std::memcpy(bytes.data() + at, &value, width);
    }
    try {
      auto plan = LoadedPlan::from_bytes(std::move(bytes));
      ++loaded;
      std::vector<Problem> found = verify(plan->root());
      bool structural = false;
      for (const Problem &problem : found)
        structural |= problem.check == "structure";
      past_structure += !structural;
      EXPECT_EQ(found.empty(), to_string(found).empty());
      dump_text(plan->root());
      dump_json(plan->root());
    } catch (const llmrt::Error &) {
    }
  }
  // The mutations are of use only while many plans get far.
  EXPECT_GT(loaded, 3000u);
  EXPECT_GT(past_structure, 1500u);
}
