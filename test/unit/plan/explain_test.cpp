// What explain reads off a plan whose numbers are known by hand.
#include "compiler/report/explain.h"

#include "test/unit/plan/plan_builder.h"

#include <gtest/gtest.h>

using namespace llmrt::plan;
using namespace llmrt::plan::testing;
using namespace llmc::report;

namespace {

Explanation explained(const TinySpec &spec) {
  auto plan = load(build_tiny_plan(spec));
  return explain(plan->root());
}

TEST(Explain, TwoByTwo) {
  Explanation e = explained({});
  EXPECT_EQ(e.num_pages, 64u);
  EXPECT_EQ(e.capacity_tokens, 256u);
  EXPECT_DOUBLE_EQ(e.capacity_sequences, 4.0); // 256 tokens / 64
  EXPECT_FALSE(e.memory_bound);                // a GiB would hold far more than 64 pages
  ASSERT_EQ(e.ranks.size(), 4u);
  const RankShare &first = e.ranks[0], &last = e.ranks[3];
  EXPECT_EQ(first.layers, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(last.layers, (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(last.kv_heads, (std::vector<uint32_t>{1}));
  EXPECT_EQ(first.q_heads, 2u);
  EXPECT_EQ(first.ffn_columns, 24u);
  EXPECT_EQ(first.embedding_rows, 25u);
  EXPECT_EQ(first.lm_head_rows, 0u);
  EXPECT_EQ(last.embedding_rows, 0u);
  EXPECT_EQ(last.lm_head_rows, 25u);
  EXPECT_EQ(first.kv_bytes_per_token, 2u * 2 * 1 * 8 * 4); // layers × (k, v) × heads × head_dim × f32
  EXPECT_EQ(e.kv_bytes_per_token, 4u * 2 * 2 * 8 * 4);
  EXPECT_EQ(e.duplicated_kv_bytes, 0u);
  // Stage 0: five all-reduces of 32 f32 to one other member, and one send of 32 f32.
  EXPECT_EQ(first.collectives, 5u);
  EXPECT_EQ(first.transfers, 1u);
  EXPECT_EQ(first.sent_per_token, 5u * 128 + 128);
  // Stage 1: rank 3 sends its 25 logits to the root, rank 2.
  EXPECT_EQ(last.sent_per_logits_row, 25u * 4);
  EXPECT_EQ(e.ranks[2].sent_per_logits_row, 0u);
  EXPECT_EQ(e.sent_per_logits_row, 100u);
}

TEST(Explain, ReplicatedKvHeads) {
  TinySpec spec;
  spec.tp = 4;
  spec.pp = 1;
  Explanation e = explained(spec);
  EXPECT_EQ(e.ranks[1].duplicated_kv_heads, 1u);
  // Two of four ranks hold a copy: 4 layers × 2 × 8 × 4 bytes × 256 tokens each.
  EXPECT_EQ(e.duplicated_kv_bytes, 2u * 4 * 2 * 8 * 4 * 256);
  EXPECT_NE(to_text(e).find("1 (1 copied)"), std::string::npos) << to_text(e);
  EXPECT_GT(e.held_elements, e.parameters);
}

TEST(Explain, BindingDevice) {
  PlanT plan = build_tiny_plan();
  // Rank 3's device has room for exactly the plan's pages.
  plan.programs[3]->ledger->budget = plan.programs[3]->ledger->total;
  auto loaded = load(plan);
  Explanation e = explain(loaded->root());
  EXPECT_TRUE(e.memory_bound);
  EXPECT_EQ(e.binding_rank, 3u);
  EXPECT_NE(to_text(e).find("bound by the memory of device cpu3 (rank 3, stage 1)"), std::string::npos) << to_text(e);
}

TEST(Explain, Text) {
  std::string text = to_text(explained({}));
  for (const char *part : {"4 ranks, tp 2 x pp 2", "stage  rank  device", "0-1", "Memory ledger", "kv_cache", "weights",
                           "64 pages of 4 tokens = 256 tokens, 4.0 sequences of 64 tokens"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

TEST(Explain, Json) {
  std::string json = to_json(explained({}));
  for (const char *part : {"\"capacity_tokens\": 256", "\"capacity_sequences\": 4.000", "\"kv_heads\": [1]", "\"memory_bound\": false",
                           "\"ledger\": {\"weights\": "})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\nin\n" << json;
  // A plan may hold any bytes as a name.
  Explanation odd = explained({});
  odd.model = "a\xff\"\n\x7f";
  EXPECT_NE(to_json(odd).find(R"("model": "a\ufffd\"\u000a\u007f")"), std::string::npos) << to_json(odd);
}

} // namespace
