// The dumps: same bytes, same text; each op on a line; valid JSON whatever the strings hold.
#include "runtime/plan/dump.h"
#include "test/unit/plan/plan_builder.h"

#include <gtest/gtest.h>

using namespace llmrt::plan;
using namespace llmrt::plan::testing;

namespace {

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(DumpText, NamesEverything) {
  TinySpec spec;
  spec.weight_file = "weights.bin";
  std::string text = dump_text(load(build_tiny_plan(spec))->root());
  EXPECT_EQ(text, dump_text(load(build_tiny_plan(spec))->root()));
  for (const char *line :
       {"plan 0.2\n", "mesh tp=2 pp=2 output_rank=2\n", "file 0 \"weights.bin\" bytes=",
        "tensor 0 \"model.embed_tokens.weight\" f32 [50 x 32] file=0 offset=0 bytes=6400\n", "group 1 \"stage1\" ranks=[2, 3]\n",
        "program rank=3 stage=1 tp_index=1 device=3 ", "  weight @layers.0.qkv f32 row_major [32 x 32] offset=",
        "    part \"model.layers.0.self_attn.k_proj.weight\" row=8 rows=8 col=0 cols=32 dst_row=16 dst_col=0\n",
        "  kv layers=[2, 3] heads=[1] head_dim=8 dtype=f32 ",
        "  %0 = embedding out=%x[0:32] table=@embed vocab=[25, +25) scale=1 kernel=cpu.embedding\n",
        "  %1 = all_reduce data=%x[0:32] group=0 algorithm=ordered seq=0 comm=host kernel=host.all_reduce\n",
        "  %3 = linear out=%layers.0.qkv[0:32] input=%h[0:32] weight=@layers.0.qkv kernel=cpu.linear layer=0\n",
        "kv_head_of_q=[0, 0] scale=0.35355338 window=0 softcap=0 kernel=cpu.attention layer=0\n", "  logits %logits[0:50]\n"})
    EXPECT_TRUE(has(text, line)) << line << "\nin\n" << text.substr(0, 6000);
  EXPECT_FALSE(has(dump_text(load(build_tiny_plan(spec))->root(), {.parts = false}), "    part "));
}

TEST(DumpText, LongAndOddStrings) {
  PlanT plan = build_tiny_plan();
  plan.text->tokenizer_json = std::string(1000, 'a');
  plan.text->chat_template = "a\n\"b\"\x01";
  plan.programs[0]->buffers[0]->name = "with space\n";
  std::string text = dump_text(load(plan)->root());
  EXPECT_TRUE(has(text, "tokenizer=<1000 bytes, xxh64 ")) << text.substr(0, 1000);
  EXPECT_TRUE(has(text, "chat_template=\"a\\n\\\"b\\\"\\x01\""));
  EXPECT_TRUE(has(text, "out=%with_space_[0:32]"));
  EXPECT_TRUE(has(dump_text(load(plan)->root(), {.long_strings = true}), std::string(1000, 'a')));
}

TEST(DumpText, BrokenPlansStillPrint) {
  PlanT plan = build_tiny_plan();
  {
    auto &linear = *static_cast<LinearT *>(plan.programs[0]->ops[3]->op.value);
    linear.weight = 4000000000u;
    *linear.input = View(99, 5, 7);
  }
  plan.programs[0]->weights[0]->parts[0]->tensor = 12345;
  plan.programs[1]->kv.reset();
  plan.limits.reset();
  std::string text = dump_text(load(plan)->root());
  EXPECT_TRUE(has(text, "input=%?99[5:12] weight=@?4000000000"));
  EXPECT_TRUE(has(text, "part ?12345"));
  EXPECT_FALSE(dump_json(load(PlanT())->root()).empty());
}

TEST(DumpJson, FieldsAndEscapes) {
  PlanT plan = build_tiny_plan();
  plan.text->tokenizer_json = std::string(300, 'a');
  plan.model->name = "q\"\\\x02\xff\xc3\xa9\xe2\x82"; // an é, then a character cut short
  std::string json = dump_json(load(plan)->root());
  EXPECT_TRUE(has(json, "\"tokenizer_json\": {\"bytes\": 300, \"xxh64\": \""));
  EXPECT_TRUE(has(json, "\"name\": \"q\\\"\\\\\\u0002\\ufffd\xc3\xa9\\ufffd\\ufffd\"")) << json.substr(0, 600);
  EXPECT_TRUE(has(json, "\"op_type\": \"Linear\""));
  EXPECT_TRUE(has(json, "\"kv_dtype\": \"F32\"") || !has(json, "\"kv_dtype\"")); // absent at its default
  EXPECT_TRUE(has(json, "\"kernel\": \"host.all_reduce\""));
}

} // namespace
