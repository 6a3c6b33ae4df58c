// Plans for GPUs on the CPU: the same logits as the same plan made for CPUs, and memory that fits this machine.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/exec/host_memory.h"
#include "runtime/plan/verify.h"
#include "runtime/support/error.h"
#include "test/unit/exec/driver.h"

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::exec::testing;
using plan::DType;
using plan::testing::TinySpec;

namespace {

TinySpec spec(uint32_t tp, uint32_t pp) {
  TinySpec spec;
  spec.tp = tp;
  spec.pp = pp;
  spec.hidden = 60;
  spec.layers = 3;
  spec.q_heads = 6;
  spec.kv_heads = 3;
  spec.head_dim = 10;
  spec.ffn = 77;
  spec.vocab = 101;
  spec.max_logits_rows = 16;
  spec.qkv_bias = spec.o_bias = spec.qk_norm = true;
  return spec;
}

// Turns a plan for CPUs into the one that the compiler makes for GPUs.
void move_to_gpus(plan::PlanT &plan) {
  for (auto &device : plan.topology->devices) {
    device->kind = plan::DeviceKind::Cuda;
    device->capability = 90;
  }
  for (auto &program : plan.programs) {
    for (auto &weight : program->weights)
      weight->layout = plan::Layout::RowMajor;
    for (auto &op : program->ops) {
      op->kernel = std::string("cuda.") + plan::name_of(op->op.type);
      if (auto *o = op->op.AsAllReduce())
        o->comm = plan::Comm::Nccl;
      else if (auto *g = op->op.AsAllGather())
        g->comm = plan::Comm::Nccl;
      else if (auto *r = op->op.AsGather())
        r->comm = plan::Comm::Nccl;
      else if (auto *s = op->op.AsSend())
        s->comm = plan::Comm::Nccl;
      else if (auto *v = op->op.AsRecv())
        v->comm = plan::Comm::Nccl;
      else if (op->op.AsLinear())
        op->kernel += ".skinny";
    }
  }
  plan::testing::relayout(plan);
}

std::vector<float> logits(const TinyModel &model) {
  ExecutorOptions options;
  options.backend = "cpu";
  Driver driver(model, options);
  EXPECT_EQ(driver.executor->backend(), "cpu");
  Sequence sequence;
  std::vector<float> all = driver.step({{&sequence, some_ids(13, model.spec.vocab), Chunk::All}}).logits;
  for (int32_t id : {3, 1, 4}) {
    const Driver::Result next = driver.step({{&sequence, {id}, Chunk::All}});
    EXPECT_EQ(next.error, "");
    all.insert(all.end(), next.logits.begin(), next.logits.end());
  }
  return all;
}

TEST(StandIn, GivesTheBitsOfThePlanForCpus) {
  for (const auto &[tp, pp] : {std::pair{1u, 1u}, std::pair{3u, 2u}})
    for (const bool tied : {false, true})
      for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
        SCOPED_TRACE(std::to_string(tp) + "x" + std::to_string(pp) + (tied ? " tied " : " ") + plan::name_of(dtype));
        TinySpec wanted = spec(tp, pp);
        wanted.tied = tied;
        wanted.weight_dtype = wanted.activation_dtype = wanted.kv_dtype = dtype;
        TinyModel model(wanted);
        const std::vector<float> on_cpus = logits(model);
        move_to_gpus(model.plan);
        const auto loaded = plan::testing::load(model.plan);
        ASSERT_TRUE(plan::verify(loaded->root()).empty()) << plan::to_string(plan::verify(loaded->root()));
        ASSERT_TRUE(stands_in(*loaded));
        const std::vector<float> stood_in = logits(model);
        ASSERT_EQ(on_cpus.size(), 16 * wanted.vocab);
        ASSERT_EQ(stood_in.size(), on_cpus.size());
        EXPECT_EQ(std::memcmp(stood_in.data(), on_cpus.data(), on_cpus.size() * 4), 0);
      }
}

TEST(StandIn, PacksWhatIsMultipliedAndNothingElse) {
  TinyModel model(spec(2, 1));
  const auto on_cpus = plan::testing::load(model.plan);
  const WeightPlaces same = host_places(on_cpus->program(0)), planned = planned_places(on_cpus->program(0));
  EXPECT_EQ(same.bytes, planned.bytes);
  for (size_t i = 0; i < planned.weights.size(); ++i) {
    EXPECT_EQ(same.weights[i].layout, planned.weights[i].layout);
    EXPECT_EQ(same.weights[i].offset, planned.weights[i].offset);
  }
  move_to_gpus(model.plan);
  const auto on_gpus = plan::testing::load(model.plan);
  const plan::Program &program = on_gpus->program(0);
  const WeightPlaces places = host_places(program);
  std::vector<bool> multiplied(places.weights.size());
  for (const plan::Op *op : *program.ops())
    if (const plan::Linear *linear = op->op_as_Linear())
      multiplied[linear->weight()] = true;
  uint64_t end = 0;
  for (uint32_t i = 0; i < places.weights.size(); ++i) {
    const plan::Weight &weight = *program.weights()->Get(i);
    const WeightPlace &place = places.weights[i];
    EXPECT_EQ(place.layout == plan::Layout::Packed16, multiplied[i]) << weight.name()->str();
    uint64_t bytes = 0;
    ASSERT_TRUE(plan::weight_bytes(weight.dtype(), place.layout, weight.rows(), weight.cols(), bytes));
    EXPECT_EQ(place.bytes, bytes);
    EXPECT_EQ(place.offset % 256, 0u);
    EXPECT_GE(place.offset, end);
    end = place.offset + place.bytes;
  }
  EXPECT_GE(places.bytes, end);
  EXPECT_GT(places.bytes, planned_places(program).bytes) << "panels of 16 rows round up";
}

TEST(StandIn, PagesFitAllSequencesAndThisMachine) {
  TinySpec wide = spec(2, 1);
  wide.num_pages = 100000; // 4 sequences of 64 tokens in pages of 4 fill 64
  TinyModel model(wide);
  const uint64_t plenty = uint64_t{1} << 40;
  uint64_t touched = 0, page = 0;
  const auto add_up = [&](const plan::LoadedPlan &plan, const HostMemory &memory) {
    touched = page = 0;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      touched += memory.places[rank].bytes + plan.program(rank).arena_bytes();
      page += plan.program(rank).kv()->page_bytes();
    }
  };
  const auto for_cpus = plan::testing::load(model.plan);
  const HostMemory whole = plan_host_memory(*for_cpus, plenty);
  EXPECT_EQ(whole.num_pages, 100000u);
  add_up(*for_cpus, whole);
  EXPECT_EQ(plan_host_memory(*for_cpus, touched + page * 40).num_pages, 36u) << "made for a machine with more memory";

  move_to_gpus(model.plan);
  const auto loaded = plan::testing::load(model.plan);
  const HostMemory memory = plan_host_memory(*loaded, plenty);
  EXPECT_EQ(memory.num_pages, 64u);
  add_up(*loaded, memory);
  EXPECT_EQ(plan_host_memory(*loaded, touched + page * 40).num_pages, 36u);
  for (const auto &[limit, words] : {std::pair{touched - 1, "weights and activations, and"},
                                     std::pair{touched + page * 17, "one sequence of 64 tokens"}}) {
    try {
      plan_host_memory(*loaded, limit);
      ADD_FAILURE() << "a limit of " << limit << " bytes was not refused";
    } catch (const Error &e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(std::to_string(limit)), std::string::npos) << e.what();
    }
  }

  ExecutorOptions options;
  options.backend = "cpu";
  Driver driver(model, options);
  EXPECT_EQ(driver.executor->num_pages(), 64u);
  EXPECT_EQ(driver.executor->step_tokens(), 512u); // what CPUs have by themselves, not what GPUs do in a step
  for (const RankMemory &rank : driver.executor->memory())
    EXPECT_LT(rank.kv, uint64_t{1} << 20) << "the pool is that of 64 pages";
  Sequence beyond;
  beyond.pages = {64};
  const auto batch = driver.batch({{&beyond, {1}, Chunk::Last}});
  EXPECT_THROW(driver.executor->submit(batch), Error);
}

} // namespace
