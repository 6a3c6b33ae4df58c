// What is uploaded of a step: each list at its place, and never more than there is room for.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/exec/packed_step.h"
#include "test/unit/exec/small_step.h"

using namespace llmrt::exec;
using namespace llmrt::test;

namespace {

// Pages of the longest sequence that are not filled.
StepLimits limits() {
  StepLimits limits = small_limits();
  limits.max_model_len = 62;
  return limits;
}

TEST(PackedStep, HoldsEachListAtItsPlace) {
  StepBatch batch = small_step();
  batch.from_rows = {-1, -1, -1, 1};
  batch.sampling = {{.draw = true, .temperature = 0.5f, .top_p = 0.9f, .min_p = 0.1f, .top_k = 3, .seed = 4, .counter = 5},
                    {.draw = false, .temperature = 0.7f}};
  for (const bool draws : {false, true}) {
    std::vector<std::byte> to(packed_bytes(limits()), std::byte{0xee});
    const PackedStep at = pack(batch, draws, to.data());
    const auto holds = [&](const auto &list, size_t offset) {
      return offset % 16 == 0 && offset + list.size() * sizeof(list[0]) <= at.bytes &&
             std::memcmp(to.data() + offset, list.data(), list.size() * sizeof(list[0])) == 0;
    };
    EXPECT_TRUE(holds(batch.slot_mapping, at.slots));
    EXPECT_TRUE(holds(batch.ids, at.ids));
    EXPECT_TRUE(holds(batch.positions, at.positions));
    EXPECT_TRUE(holds(batch.from_rows, at.from_rows));
    EXPECT_TRUE(holds(batch.seq_starts, at.seq_starts));
    EXPECT_TRUE(holds(batch.context_lens, at.context_lens));
    EXPECT_TRUE(holds(batch.logits_rows, at.logits_rows));
    EXPECT_TRUE(holds(batch.page_starts, at.page_starts));
    EXPECT_TRUE(holds(batch.pages, at.pages));
    EXPECT_LE(at.bytes, to.size());
    EXPECT_EQ(to[at.bytes], std::byte{0xee});
    if (!draws)
      continue;
    PackedDraw rows[2];
    std::memcpy(rows, to.data() + at.draws, sizeof rows);
    EXPECT_EQ(rows[0].temperature, 0.5f);
    EXPECT_EQ(rows[0].top_p, 0.9f);
    EXPECT_EQ(rows[0].min_p, 0.1f);
    EXPECT_EQ(rows[0].top_k, 3);
    EXPECT_EQ(rows[0].seed, 4u);
    EXPECT_EQ(rows[0].counter, 5u);
    EXPECT_EQ(rows[1].temperature, 0.0f);
  }
}

// The largest step that there can be.
TEST(PackedStep, AlwaysHasRoom) {
  const StepLimits most = limits();
  StepBatch batch;
  batch.ids.resize(most.max_batched_tokens), batch.positions.resize(most.max_batched_tokens);
  batch.from_rows.resize(most.max_batched_tokens), batch.slot_mapping.resize(most.max_batched_tokens);
  batch.seq_starts.resize(most.max_num_seqs + 1), batch.page_starts.resize(most.max_num_seqs + 1);
  batch.context_lens.resize(most.max_num_seqs), batch.pages.resize(most.max_num_seqs * 16);
  batch.logits_rows.resize(most.max_logits_rows), batch.sampling.resize(most.max_logits_rows);
  std::vector<std::byte> to(packed_bytes(most) + 4096);
  EXPECT_LE(pack(batch, true, to.data()).bytes, packed_bytes(most));
}

} // namespace
