// Proofs of structure, shapes, limits, buffers and memory: a valid plan is accepted, a plan broken in one way is
// refused with the sentence that says so. Weights and everything between ranks: verify_ranks_test.cpp.
#include "test/unit/plan/broken.h"

#include <cmath>

using namespace llmrt::plan;
using namespace llmrt::plan::testing;

namespace {

TEST(Verify, AcceptsValidPlans) {
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

// --- structure ---------------------------------------------------------------------------------------------------

TEST(VerifyStructure, EmptyPlan) { EXPECT_REFUSED(problems(PlanT()), "structure", "no model", "no limits", "no topology"); }

TEST(VerifyStructure, MissingTables) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.provenance.reset(); }), "structure", "no provenance");
  EXPECT_REFUSED(broken([](PlanT &p) { p.text.reset(); }), "structure", "no text");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[2]->kv.reset(); }), "structure", "rank 2", "no KV cache");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->ops.clear(); }), "structure", "rank 1", "no op");
}

TEST(VerifyStructure, RankCounts) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.tp = 3; }), "structure", "4 programs", "tp 3 × pp 2 = 6");
  EXPECT_REFUSED(broken([](PlanT &p) { p.tp = 1u << 31, p.pp = 1u << 31; }), "structure", "4 programs");
  EXPECT_REFUSED(broken([](PlanT &p) { p.output_rank = 9; }), "structure", "output rank is 9", "4 ranks");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->rank = 2; }), "structure", "rank 1", "it is rank 2");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->tp_index = 0; }), "structure", "Another rank is at stage 0, index 0");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[3]->stage = 2; }), "structure", "stage 2 of 2");
}

TEST(VerifyStructure, Indices) {
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<LinearT>(p, 1).weight = 99; }), "structure", "rank 1", "(linear)", "weight 99");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<LinearT>(p, 1).bias = -2; }), "structure", "bias is weight -2");
  EXPECT_REFUSED(broken([](PlanT &p) { *op_of<AddT>(p, 0).input = View(77, 0, 32); }), "structure", "buffer 77");
  EXPECT_REFUSED(broken([](PlanT &p) { *op_of<AddT>(p, 0).input = View(0, 1, 32); }), "structure", "columns [1, 33)", "32 columns");
  EXPECT_REFUSED(broken([](PlanT &p) { *op_of<AddT>(p, 0).input = View(0, 4294967295u, 32); }), "structure", "32 columns");
  EXPECT_REFUSED(broken([](PlanT &p) { *op_of<AddT>(p, 0).input = View(0, 0, 0); }), "structure", "at least one column");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AddT>(p, 0).input.reset(); }), "structure", "input is missing");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<RopeT>(p, 0).table = 5; }), "structure", "rope table 5");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AttentionT>(p, 0).layer = 2; }), "structure", "local KV layer 2");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AttentionT>(p, 0).kv_head_of_q[1] = 7; }), "structure", "local KV head 7");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AttentionT>(p, 0).kv_head_of_q.pop_back(); }), "structure", "maps 1 query heads");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 0).group = 8; }), "structure", "group 8");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<GatherT>(p, 2).root = 2; }), "structure", "root is member 2");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<GatherT>(p, 2).counts.push_back(1); }), "structure", "3 counts", "2 members");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<SendT>(p, 0).peer = 4; }), "structure", "peer is rank 4");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<SendT>(p, 0).peer = 0; }), "structure", "another of the 4 ranks");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->weights[0]->parts[0]->tensor = 1000; }), "structure", "tensor 1000");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[3]->device = 4; }), "structure", "device 4");
  EXPECT_REFUSED(broken([](PlanT &p) { p.groups[0]->ranks[1] = 0; }), "structure", "rank 0 twice");
  EXPECT_REFUSED(broken([](PlanT &p) { p.groups[0]->ranks[1] = 40; }), "structure", "names rank 40");
  EXPECT_REFUSED(broken([](PlanT &p) { p.topology->links[0]->a = 50; }), "structure", "joins devices 50");
  EXPECT_REFUSED(broken([](PlanT &p) { p.topology->devices[0]->host = 3; }), "structure", "host 3");
}

TEST(VerifyStructure, NamesAndKinds) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->ops[3]->kernel.clear(); }), "structure", "op 3", "names no kernel");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->buffers[0]->name.clear(); }), "structure", "Buffer 0 has no name");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->ops[3]->op.Reset(); }), "structure", "op 3", "kind is 0");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->ops[3]->layer = 4; }), "structure", "layer 4", "4 layers");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->buffers[0]->dtype = DType(99); }), "structure", "data type");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 0).algorithm = Algorithm(9); }), "structure", "unknown");
  EXPECT_REFUSED(broken([](PlanT &p) { p.model->kv_heads = 0; }), "structure", "kv_heads is 0");
  EXPECT_REFUSED(broken([](PlanT &p) { p.rope_tables[0]->inv_freq[0] = std::nanf(""); }), "structure", "not finite");
  EXPECT_REFUSED(broken([](PlanT &p) { p.tensors[0]->fill = Fill::FromFile; }), "structure", "either has a file, or is filled");
  EXPECT_REFUSED(broken([](PlanT &p) { p.tensors[0]->rows = 1ull << 40, p.tensors[0]->cols = 1ull << 40; }), "structure",
                 "which no tensor can be");
}

// --- limits ------------------------------------------------------------------------------------------------------

TEST(VerifyLimits, Relations) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.limits->max_model_len = 257; }), "limits", "257 tokens", "64 pages × 4 = 256");
  EXPECT_REFUSED(broken([](PlanT &p) { p.limits->max_logits_rows = 33; }), "limits", "33 logits rows", "32");
  EXPECT_REFUSED(broken([](PlanT &p) { p.limits->page_size = 0; }), "limits", "page_size is 0");
  EXPECT_REFUSED(broken([](PlanT &p) { p.limits->memory_utilization = 1.5f; }), "limits", "memory_utilization");
  EXPECT_REFUSED(broken([](PlanT &p) { p.limits->memory_utilization = std::nanf(""); }), "limits", "memory_utilization");
  EXPECT_REFUSED(broken([](PlanT &p) { p.model->q_heads = 5; }), "limits", "5 query heads", "2 KV heads");
}

// --- shapes ------------------------------------------------------------------------------------------------------

TEST(VerifyShapes, Linear) {
  EXPECT_REFUSED(broken([](PlanT &p) { *op_of<LinearT>(p, 0).input = View(1, 0, 31); }), "shapes", "31", "[out columns × input columns]");
}
TEST(VerifyShapes, Norm) {
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<RmsNormT>(p, 0).weight = op_of<LinearT>(p, 0).weight; }), "shapes", "[1 × 32]");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<RmsNormT>(p, 0).eps = std::nanf(""); }), "shapes", "eps");
}
TEST(VerifyShapes, Heads) {
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<RopeT>(p, 0).q_heads = 3; }), "shapes", "3 heads × 8 = 24");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<KvAppendT>(p, 0).head_dim = 4; }), "shapes", "1 heads × 4 = 4");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<RopeT>(p, 0).rotary_dim = 6; }), "shapes", "rotates 6 of 8", "4 frequencies");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<RopeT>(p, 0).rotary_dim = 10; }), "shapes", "rotates 10 of 8");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AttentionT>(p, 0).scale = 0; }), "shapes", "scale is 0");
}
TEST(VerifyShapes, Aliasing) {
  EXPECT_REFUSED(broken([](PlanT &p) { *op_of<RmsNormT>(p, 0).out = *op_of<RmsNormT>(p, 0).input; }), "shapes", "share columns");
}
TEST(VerifyShapes, RowsAndTypes) {
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 2, "selected").rows = Rows::Tokens; }), "shapes", "one per logits row");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 0, "h").dtype = DType::Q4_1; }), "shapes", "q4_1", "f32, f16 or bf16");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 2, "logits").dtype = DType::F16; }), "shapes", "f16", "f32", "both must be the same");
}
TEST(VerifyShapes, Embedding) {
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<EmbeddingT>(p, 0).vocab_count = 24; }), "shapes", "25 rows", "24 token ids");
}
TEST(VerifyShapes, GatherCounts) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   op_of<GatherT>(p, 2).counts = {24, 26};
                   op_of<GatherT>(p, 3).counts = {24, 26};
                 }),
                 "shapes", "25 columns", "member 0", "24");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<GatherT>(p, 2).counts = {UINT64_MAX, 25}; }), "shapes", "64 bits");
}

// --- buffers -----------------------------------------------------------------------------------------------------

TEST(VerifyBuffers, ReadBeforeWritten) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->ops.erase(p.programs[0]->ops.begin() + find_op<RmsNormT>(p, 0)); }), "buffers",
                 "rank 0", "'h'[0:32]", "never written");
  // Only one column of many is missing.
  EXPECT_REFUSED(broken([](PlanT &p) {
                   uint32_t logits = op_of<GatherT>(p, 2).out->buffer();
                   p.programs[2]->buffers[logits]->cols = 51;
                   *p.programs[2]->logits = View(logits, 0, 51);
                 }),
                 "buffers", "column 50 was never written");
}
TEST(VerifyBuffers, Lifetime) {
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 0, "x").last_op -= 1; }), "buffers", "'x' is used from op 0");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 0, "x").first_op = 1; }), "buffers", "keeps it from op 1");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 0, "x").last_op = 4000000000u; }), "buffers", "4000000000");
}
TEST(VerifyBuffers, Overlap) {
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 3, "h").offset = buffer_of(p, 3, "x").offset + 256; }), "buffers", "rank 3",
                 "live at once and overlap");
  // Those that do not live at once may share bytes.
  EXPECT_EQ(broken([](PlanT &p) { buffer_of(p, 0, "layers.1.qkv").offset = buffer_of(p, 0, "layers.0.qkv").offset; }), "");
}
TEST(VerifyBuffers, OutsideArena) {
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 0, "h").offset = p.programs[0]->arena_bytes; }), "buffers", "the arena has");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 0, "h").offset = UINT64_MAX - 255; }), "buffers", "the arena has");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 0, "h").offset += 64; }), "buffers", "multiples of 256");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 0, "h").bytes -= 1; }), "buffers", "[32 × 32]", "4096 bytes", "4095");
}
TEST(VerifyBuffers, Unused) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   p.programs[0]->buffers.push_back(std::make_unique<BufferT>(buffer_of(p, 0, "h")));
                   p.programs[0]->buffers.back()->name = "spare";
                 }),
                 "buffers", "'spare' is used by no op");
}

// --- memory ------------------------------------------------------------------------------------------------------

TEST(VerifyMemory, LedgerSum) {
  EXPECT_REFUSED(broken([](PlanT &p) { ledger_line(p, 1, "runtime") += 1; }), "memory", "rank 1", "sum to");
  EXPECT_REFUSED(broken([](PlanT &p) { ledger_line(p, 1, "runtime") = UINT64_MAX; }), "memory", "64 bits");
}
TEST(VerifyMemory, LinesAgree) {
  for (const char *name : {"weights", "activations", "workspace", "kv_cache"})
    EXPECT_REFUSED(broken([&](PlanT &p) {
                     ledger_line(p, 0, name) += 256;
                     p.programs[0]->ledger->total += 256;
                   }),
                   "memory", name, "the program takes");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->ledger->lines[0]->name = "weight"; }), "memory", "0 lines 'weights'");
}
TEST(VerifyMemory, Budget) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[2]->ledger->budget = p.programs[2]->ledger->total - 1; }), "memory", "rank 2",
                 "its budget on device 'cpu2'");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[2]->ledger->budget = p.programs[2]->ledger->memory + 1; }), "memory", "device 'cpu2' has");
  EXPECT_REFUSED(broken([](PlanT &p) { p.topology->devices[2]->memory_bytes /= 2; }), "memory", "counts on");
}
TEST(VerifyMemory, SharedDevice) {
  // Four ranks on one device, each within its own budget, all together not.
  EXPECT_REFUSED(broken([](PlanT &p) {
                   uint64_t memory = p.programs[2]->ledger->total * 2;
                   for (auto &device : p.topology->devices)
                     device->memory_bytes = memory;
                   for (auto &program : p.programs) {
                     program->device = 0;
                     program->ledger->memory = memory;
                     program->ledger->budget = memory;
                   }
                 }),
                 "memory", "4 ranks on device 'cpu0'");
}

} // namespace
