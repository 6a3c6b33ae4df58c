// Proofs about weights and about what ranks share: tiling, KV pages, heads, vocabulary, dataflow, collectives,
// transfers, topology, output. Each test breaks one thing.
#include "test/unit/plan/broken.h"

using namespace llmrt::plan;
using namespace llmrt::plan::testing;

namespace {

// --- weights -----------------------------------------------------------------------------------------------------

TEST(VerifyWeights, Gap) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   for (uint32_t rank : {0, 1})
                     weight_of(p, rank, "model.layers.0.input_layernorm.weight").parts[0]->replica = true;
                 }),
                 "weights", "'model.layers.0.input_layernorm.weight' [1 × 32]", "no rank holds row 0, column 0");
}
TEST(VerifyWeights, Overlap) {
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 1, "model.layers.0.input_layernorm.weight").parts[0]->replica = false; }),
                 "weights", "two first holders", "rank 0", "rank 1", "must be a replica");
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 1, "layers.0.o").parts[0]->col -= 1; }), "weights",
                 "no rank holds row 0, column 31"); // shifted by one: column 15 is held twice, the last one by nobody
}
TEST(VerifyWeights, OutsideTensor) {
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 1, "layers.0.o").parts[0]->col += 1; }), "weights", "does not contain", "rank 1's 'layers.0.o'");
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 1, "layers.0.o").parts[0]->col = UINT64_MAX; }), "weights", "does not contain");
}
TEST(VerifyWeights, ReplicaOutsideTensor) {
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 1, "model.layers.0.input_layernorm.weight").parts[0]->col = 1; }), "weights",
                 "does not contain");
}
TEST(VerifyWeights, StageHoldsPart) {
  // The tied table's copy in the last stage misses a row, which the first stage has.
  TinySpec spec;
  spec.tied = true;
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 3, "lm_head").parts[0]->row = 24; }, spec), "weights", "stage 1 uses it",
                 "row 49, column 0");
}
TEST(VerifyWeights, DestinationGapAndOverlap) {
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 0, "layers.0.gate_up").parts[1]->dst_row -= 1; }), "weights", "filled twice");
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 0, "layers.0.gate_up").parts.pop_back(); }), "weights", "no part fills row 24");
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 0, "layers.0.gate_up").parts[1]->dst_row += 1; }), "weights", "must be non-empty and lie inside");
}
TEST(VerifyWeights, SourceBytes) {
  TinySpec spec;
  spec.weight_file = "weights.bin";
  EXPECT_REFUSED(broken([](PlanT &p) { p.files[0]->bytes -= 1; }, spec), "weights", "'weights.bin', which has");
  EXPECT_REFUSED(broken([](PlanT &p) { p.tensors[0]->offset = UINT64_MAX - 3; }, spec), "weights", "'model.embed_tokens.weight'");
  EXPECT_REFUSED(broken([](PlanT &p) { p.tensors[0]->bytes -= 4; }, spec), "weights", "takes 6400 bytes", "6396");
  EXPECT_REFUSED(broken([](PlanT &p) { p.tensors[0]->dtype = DType::Q4_K; }, spec), "weights", "q4_k", "whole blocks");
}
TEST(VerifyWeights, Regions) {
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 0, "layers.0.o").offset = weight_of(p, 0, "layers.0.qkv").offset; }), "weights",
                 "'layers.0.qkv'", "'layers.0.o'", "overlap");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->weight_bytes -= 256; }), "weights", "the region has");
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 0, "layers.0.o").offset += 1; }), "weights", "multiples of 256");
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 0, "layers.0.o").bytes -= 4; }), "weights", "which takes 2048 bytes", "2044");
}
TEST(VerifyWeights, Parameters) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.model->parameters += 1; }), "weights", "parameters");
}

// --- KV ----------------------------------------------------------------------------------------------------------

TEST(VerifyKv, PageBytes) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->kv->layer_page_bytes *= 2; }), "kv", "rank 1", "256 bytes a layer and page");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->kv->page_bytes += 1; }), "kv", "the plan says");
  EXPECT_REFUSED(broken([](PlanT &p) { p.limits->num_pages = 63; }), "kv", "63 pages");
}
TEST(VerifyKv, Geometry) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->kv->dtype = DType::F16; }), "kv", "f16", "f32");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->kv->head_dim = 4; }), "kv", "heads of 4 elements");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->kv->heads[0] = 2; }), "kv", "KV head 2", "the model has 2");
}
TEST(VerifyKv, LayersOfStages) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   for (uint32_t rank : {2, 3}) {
                     p.programs[rank]->kv->layers[0] = 1;
                     for (auto &op : p.programs[rank]->ops)
                       op->layer = -1;
                   }
                 }),
                 "kv", "Layer 1 belongs to two stages");
  EXPECT_REFUSED(broken([](PlanT &p) { p.model->layers = 5; }), "kv", "4 layers together", "the model has 5");
  EXPECT_REFUSED(broken([](PlanT &p) { std::swap(p.programs[1]->kv->layers[0], p.programs[1]->kv->layers[1]); }), "kv",
                 "not hold the same 2 layers as rank 0");
}
TEST(VerifyKv, OpLayer) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->ops[find_op<KvAppendT>(p, 0)]->layer = 1; }), "kv", "belongs to layer 1");
}
TEST(VerifyKv, AppendBeforeAttention) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   uint32_t append = find_op<KvAppendT>(p, 0);
                   std::swap(p.programs[0]->ops[append], p.programs[0]->ops[append + 1]);
                 }),
                 "kv", "before the step's keys and values are in it");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<KvAppendT>(p, 0, 1).layer = 0; }), "kv", "a second time", "never appended to");
}
TEST(VerifyKv, Duplicates) {
  TinySpec spec;
  spec.tp = 4;
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->kv->duplicated_heads = 0; }, spec), "kv", "rank 1", "hold 1 of its KV heads too");
}

// --- heads and dataflow ------------------------------------------------------------------------------------------

TEST(VerifyHeads, WrongKvHead) {
  TinySpec spec;
  spec.tp = 1;
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AttentionT>(p, 0).kv_head_of_q = {0, 1, 0, 1}; }, spec), "heads", "query head 1",
                 "reads KV head 0", "local KV head 1");
}
TEST(VerifyHeads, MissingAndTwice) {
  // Rank 1 computes rank 0's query heads again; the parts become replicas so that only the heads are wrong.
  std::string text = broken([](PlanT &p) {
    auto &part = *weight_of(p, 1, "layers.0.qkv").parts[0];
    part.row = 0;
  });
  EXPECT_REFUSED(text, "heads", "query head 0 is computed twice in stage 0", "computes query head 2");
}
TEST(VerifyHeads, KvHeadFromOtherRows) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   std::swap(weight_of(p, 0, "layers.0.qkv").parts[1]->row, weight_of(p, 1, "layers.0.qkv").parts[1]->row);
                 }),
                 "heads", "Its k must be the KV heads that the rank's cache holds");
}
TEST(VerifyHeads, NotWholeHeads) {
  EXPECT_REFUSED(broken([](PlanT &p) { weight_of(p, 0, "layers.0.qkv").parts[0]->row = 4; }), "heads", "cannot be followed to whole heads");
}
TEST(VerifyDataflow, WrongColumnsOfOutputProjection) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   std::swap(weight_of(p, 0, "layers.0.o").parts[0]->col, weight_of(p, 1, "layers.0.o").parts[0]->col);
                 }),
                 "dataflow", "'layers.0.o'", "same columns in the same order");
}
TEST(VerifyDataflow, WrongColumnsOfDownProjection) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   std::swap(weight_of(p, 0, "layers.1.down").parts[0]->col, weight_of(p, 1, "layers.1.down").parts[0]->col);
                 }),
                 "dataflow", "'layers.1.down'", "same columns in the same order");
}
TEST(VerifyDataflow, GateAndUpApart) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   std::swap(weight_of(p, 0, "layers.0.gate_up").parts[1]->row, weight_of(p, 1, "layers.0.gate_up").parts[1]->row);
                 }),
                 "dataflow", "same rows of the gate and up projections");
}
TEST(VerifyDataflow, PartialSumUsed) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   for (uint32_t rank : {0, 1})
                     p.programs[rank]->ops.erase(p.programs[rank]->ops.begin() + find_op<AllReduceT>(p, rank, 1));
                 }),
                 "dataflow", "a partial sum", "must be reduced before it is used");
}
TEST(VerifyDataflow, WholeValueSummed) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   for (uint32_t rank : {0, 1})
                     *op_of<AllReduceT>(p, rank, 1).data = *op_of<RmsNormT>(p, rank).out;
                 }),
                 "dataflow", "a whole value", "once per member");
}
TEST(VerifyDataflow, BiasOnEveryRank) {
  TinySpec spec;
  spec.o_bias = true;
  EXPECT_REFUSED(broken(
                     [](PlanT &p) {
                       WeightT bias = weight_of(p, 0, "layers.0.o_bias");
                       bias.parts[0]->replica = true;
                       p.programs[1]->weights.push_back(std::make_unique<WeightT>(bias));
                       op_of<LinearT>(p, 1, 1).bias = int32_t(p.programs[1]->weights.size()) - 1;
                     },
                     spec),
                 "dataflow", "'layers.0.o_bias' is a replica");
}
TEST(VerifyDataflow, UnusedWeight) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   WeightT norm = weight_of(p, 0, "model.layers.0.input_layernorm.weight");
                   norm.parts[0]->replica = true;
                   norm.name = "spare";
                   p.programs[0]->weights.push_back(std::make_unique<WeightT>(norm));
                 }),
                 "dataflow", "'spare' is used by no op");
}

// --- vocabulary and output ---------------------------------------------------------------------------------------

TEST(VerifyVocabulary, EmbeddingRange) {
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<EmbeddingT>(p, 1).vocab_begin = 24; }), "vocabulary", "rank 1", "from 24 on",
                 "Token id 24 is served by two embeddings");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<EmbeddingT>(p, 0).vocab_begin = 1; }), "vocabulary", "token id 0 of 50");
}
TEST(VerifyVocabulary, LogitsOrder) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   std::swap(weight_of(p, 2, "lm_head").parts[0]->row, weight_of(p, 3, "lm_head").parts[0]->row);
                 }),
                 "vocabulary", "rank 2", "token ids [0, 25)", "from [25, 50)");
}
TEST(VerifyOutput, ExactlyOneRank) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.output_rank = 3; }), "structure", "exactly the output rank");
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[0]->logits = std::make_unique<View>(0, 0, 32); }), "structure", "rank 0", "It has logits");
}
TEST(VerifyOutput, Shape) {
  EXPECT_REFUSED(broken([](PlanT &p) { *p.programs[2]->logits = View(p.programs[2]->logits->buffer(), 0, 49); }), "output", "49", "f32 [logits × 50]");
}
TEST(VerifyOutput, ComesFromElsewhere) {
  TinySpec spec;
  spec.tp = 1;
  spec.hidden = 50;
  EXPECT_REFUSED(broken([](PlanT &p) { *p.programs[1]->logits = View(op_of<SelectRowsT>(p, 1).out->buffer(), 0, 50); }, spec), "output",
                 "neither from one linear nor from one gather");
}

// --- collectives and transfers -----------------------------------------------------------------------------------

TEST(VerifyCollectives, Differences) {
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 1, 2).seq = 9; }), "collectives", "rank 1", "Its seq is 9", "has 2");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 1, 2).algorithm = Algorithm::Ring; }), "collectives", "ring", "ordered");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 1, 2).comm = Comm::Nccl; }), "collectives", "nccl", "host");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 1, 2).one_shot_bytes = 64; }), "collectives", "one_shot_bytes is 64", "has 0");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 1, 2).two_shot_bytes = 64; }), "collectives", "two_shot_bytes is 64", "has 0");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 1, 2).data = std::make_unique<View>(2, 0, 16); }), "collectives", "column count is 16", "has 32");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 1, "y").dtype = DType::BF16; }), "collectives", "bf16", "f32");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<GatherT>(p, 3).counts = {26, 25}; }), "collectives", "count for member 0", "26", "25");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<GatherT>(p, 3).root = 1; }), "collectives", "root is 1");
}
// Members choose the way by how their own rows lie, and have to choose the same.
TEST(VerifyCollectives, RowsLieAlike) {
  auto widen = [](PlanT &p, std::initializer_list<uint32_t> ranks, const char *name, uint64_t more) {
    for (uint32_t rank : ranks)
      buffer_of(p, rank, name).cols += more;
    relayout(p);
  };
  EXPECT_REFUSED(broken([&](PlanT &p) { widen(p, {1}, "y", 8); }), "collectives", "rank 1", "row stride is 40", "has 32");
  EXPECT_REFUSED(broken([&](PlanT &p) {
                   widen(p, {0, 1}, "y", 8);
                   auto &sum = op_of<AllReduceT>(p, 1, 2);
                   sum.data = std::make_unique<View>(sum.data->buffer(), 2, 32);
                 }),
                 "collectives", "rank 1", "first column is 2", "has 0");
  EXPECT_REFUSED(broken([&](PlanT &p) { widen(p, {3}, "logits_part", 7); }), "collectives", "rank 3", "rows with gaps", "rows without gaps");
}
// Kernels of one member write into the memory of the others.
TEST(VerifyCollectives, PushedSumsNeedPeers) {
  for (auto shots : {&AllReduceT::one_shot_bytes, &AllReduceT::two_shot_bytes})
    EXPECT_REFUSED(broken([&](PlanT &p) {
                     for (auto &program : p.programs)
                       for (auto &op : program->ops)
                         if (op->op.type == OpKind::AllReduce)
                           op->op.AsAllReduce()->*shots = 64;
                   }),
                   "topology", "by peer access", "has none");
}
TEST(VerifyCollectives, OtherOrder) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   std::swap(op_of<AllReduceT>(p, 1, 1).seq, op_of<AllReduceT>(p, 1, 2).seq);
                 }),
                 "collectives", "numbers rise");
}
TEST(VerifyCollectives, MissingOnOneRank) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.programs[1]->ops.erase(p.programs[1]->ops.begin() + find_op<AllReduceT>(p, 1, 4)); }), "collectives",
                 "rank 1", "meets 4 collectives", "meets 5");
}
TEST(VerifyCollectives, Membership) {
  EXPECT_REFUSED(broken([](PlanT &p) { p.groups[0]->ranks = {0, 2}; }), "collectives", "rank 1", "not a member of group 'stage0'", "several stages");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<AllReduceT>(p, 0).group = 1; }), "collectives", "of stage 0", "of stage 1");
}
TEST(VerifyCollectives, RootReceives) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   op_of<GatherT>(p, 3).out = std::make_unique<View>(*op_of<GatherT>(p, 3).input);
                 }),
                 "collectives", "not the root and has an out");
}
TEST(VerifyTransfers, Unpaired) {
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<SendT>(p, 0).peer = 3; }), "transfers", "sends 0 times to rank 2, which receives 1 times",
                 "sends 1 times to rank 3, which receives 0 times");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<RecvT>(p, 2).seq = 1; }), "transfers", "Its seq is 0", "has 1");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<RecvT>(p, 2).comm = Comm::Nccl; }), "transfers", "host", "nccl");
  EXPECT_REFUSED(broken([](PlanT &p) { buffer_of(p, 2, "x").dtype = DType::F16; }), "transfers", "f32", "f16");
  EXPECT_REFUSED(broken([](PlanT &p) { op_of<SendT>(p, 0).input = std::make_unique<View>(0, 0, 16); }), "transfers", "× 16]", "× 32]");
}
// Two ranks that each send before they receive: with nothing buffered, neither send ever completes.
TEST(VerifyTransfers, Deadlock) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   auto &first = p.programs[0]->ops, &second = p.programs[2]->ops;
                   auto recv = [](const View &out, uint32_t peer) {
                     auto op = std::make_unique<OpT>();
                     op->kernel = "host.recv";
                     RecvT t;
                     t.out = std::make_unique<View>(out);
                     t.peer = peer;
                     op->op.Set(std::move(t));
                     return op;
                   };
                   auto send = [](const View &input, uint32_t peer) {
                     auto op = std::make_unique<OpT>();
                     op->kernel = "host.send";
                     SendT t;
                     t.input = std::make_unique<View>(input);
                     t.peer = peer;
                     op->op.Set(std::move(t));
                     return op;
                   };
                   // Rank 0 waits for rank 2 before it sends, rank 2 sends back only after it has received.
                   View spare = *op_of<RmsNormT>(p, 0).out;
                   first.insert(first.begin() + find_op<SendT>(p, 0), recv(spare, 2));
                   second.push_back(send(*op_of<RmsNormT>(p, 2).out, 0));
                 }),
                 "transfers", "never completes", "in a circle");
}
TEST(VerifyCollectives, DeadlockBetweenGroupAndTransfer) {
  // Rank 2 reduces before it receives; rank 3 receives first. The collective of the stage waits for rank 3, which waits
  // for rank 1; that is fine. But rank 2 never gets to its recv if rank 0 must be met first: order of two kinds.
  std::string text = broken([](PlanT &p) {
    auto &ops = p.programs[2]->ops;
    uint32_t recv = find_op<RecvT>(p, 2), reduce = find_op<AllReduceT>(p, 2);
    auto moved = std::move(ops[recv]);
    ops.erase(ops.begin() + recv);
    ops.insert(ops.begin() + reduce, std::move(moved)); // behind the first all_reduce
  });
  EXPECT_REFUSED(text, "buffers", "never written"); // its order is wrong for values, and not for communication
  EXPECT_EQ(text.find("in a circle"), std::string::npos) << text;
}

// --- topology ----------------------------------------------------------------------------------------------------

void on_gpus(PlanT &p) {
  for (auto &device : p.topology->devices)
    device->kind = DeviceKind::Cuda;
}
TEST(VerifyTopology, NoLink) {
  EXPECT_EQ(broken(on_gpus), "");
  EXPECT_REFUSED(broken([](PlanT &p) {
                   on_gpus(p);
                   p.topology->links.erase(p.topology->links.begin()); // 0-1
                 }),
                 "topology", "rank 0", "with rank 1 (group stage0)", "no link", "'cpu0' and 'cpu1'");
}
TEST(VerifyTopology, TransferNeedsLink) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   on_gpus(p);
                   std::erase_if(p.topology->links, [](auto &l) { return l->a == 0 && l->b == 2; });
                 }),
                 "topology", "with rank 2 (send)", "no link");
}
TEST(VerifyTopology, HostsNeedLinks) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   p.topology->hosts.push_back("other");
                   p.topology->devices[1]->host = 1;
                   p.topology->links.clear();
                 }),
                 "topology", "no link", "'cpu0' and 'cpu1'");
  // CPU devices of one host share its memory.
  EXPECT_EQ(broken([](PlanT &p) { p.topology->links.clear(); }), "");
}
TEST(VerifyTopology, PeerNeedsP2p) {
  EXPECT_REFUSED(broken([](PlanT &p) {
                   on_gpus(p);
                   for (uint32_t rank = 0; rank < 2; ++rank)
                     for (uint32_t nth = 0; nth < 5; ++nth)
                       op_of<AllReduceT>(p, rank, nth).comm = Comm::Peer;
                 }),
                 "topology", "by peer access", "has none");
}

} // namespace
