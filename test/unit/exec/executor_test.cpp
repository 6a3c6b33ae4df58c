// Whole programs: logits against the double-precision reference over splits and features, and the promise that a
// row's bits depend on its own sequence only, whatever the chunks, the batch, the threads or the run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/cpu/isa.h"
#include "test/unit/exec/driver.h"

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::exec::testing;
using plan::DType;
using plan::testing::TinySpec;

namespace {

double worst(const std::vector<float> &got, const double *expected) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::fabs(got[i] - expected[i]));
  return worst;
}

// Prefill in two chunks beside another sequence, then decode; every row against the reference.
void expect_reference(const TinyModel &model, double tolerance, ExecutorOptions options = {}) {
  Driver driver(model, options);
  const size_t vocab = model.spec.vocab;
  const std::vector<int32_t> a = some_ids(23, vocab, 1), b = some_ids(17, vocab, 2);
  const std::vector<double> want_a = model.reference->logits(a), want_b = model.reference->logits(b);
  Sequence first, second;
  const auto part = [](const std::vector<int32_t> &ids, size_t begin, size_t end) {
    return std::vector<int32_t>(ids.begin() + static_cast<int64_t>(begin), ids.begin() + static_cast<int64_t>(end));
  };
  auto result = driver.step({{&first, part(a, 0, 7), Chunk::All}});
  ASSERT_EQ(result.error, "");
  ASSERT_EQ(result.logits.size(), 7 * vocab);
  EXPECT_LT(worst(result.logits, want_a.data()), tolerance) << "prefill";

  result = driver.step({{&first, part(a, 7, 20), Chunk::None}, {&second, part(b, 0, 14), Chunk::Last}});
  ASSERT_EQ(result.error, "");
  ASSERT_EQ(result.logits.size(), vocab);
  EXPECT_LT(worst(result.logits, want_b.data() + 13 * vocab), tolerance) << "chunk beside another";

  for (size_t i = 0; i < 3; ++i) {
    result = driver.step({{&second, {b[14 + i]}, Chunk::Last}, {&first, {a[20 + i]}, Chunk::Last}});
    ASSERT_EQ(result.error, "");
    const std::vector<float> row_b(result.logits.begin(), result.logits.begin() + static_cast<int64_t>(vocab));
    const std::vector<float> row_a(result.logits.begin() + static_cast<int64_t>(vocab), result.logits.end());
    EXPECT_LT(worst(row_b, want_b.data() + (14 + i) * vocab), tolerance) << "decode " << i;
    EXPECT_LT(worst(row_a, want_a.data() + (20 + i) * vocab), tolerance) << "decode " << i;
  }
}

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
  spec.page_size = 4;
  return spec;
}

class Splits : public ::testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

TEST_P(Splits, GiveTheReferencesLogits) {
  TinySpec plain = spec(GetParam().first, GetParam().second);
  expect_reference(TinyModel(plain), 1e-4);
  TinySpec rich = plain;
  rich.qkv_bias = rich.o_bias = rich.qk_norm = rich.tied = true;
  rich.window = 6;
  expect_reference(TinyModel(rich, 2), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(TpPp, Splits,
                         ::testing::Values(std::pair{1u, 1u}, std::pair{2u, 1u}, std::pair{3u, 1u}, std::pair{6u, 1u},
                                           std::pair{1u, 2u}, std::pair{1u, 3u}, std::pair{2u, 2u}, std::pair{3u, 2u}),
                         [](const auto &info) {
                           return "tp" + std::to_string(info.param.first) + "pp" + std::to_string(info.param.second);
                         });

TEST(Types, EveryWeightAndCacheTypeStaysClose) {
  // 16-bit weights are exact in the reference; what remains is the rounding of activations (bf16 products on some
  // instruction sets), of cached keys and values, and, where the plan says so, of the activation buffers.
  struct Case {
    DType weight, activation, kv;
    double tolerance;
  };
  for (const Case &c : {Case{DType::F16, DType::F32, DType::F32, 1e-4}, Case{DType::F32, DType::F32, DType::F16, 2e-2},
                        Case{DType::BF16, DType::F32, DType::BF16, 1e-1}, Case{DType::F32, DType::F16, DType::F16, 3e-2},
                        Case{DType::BF16, DType::BF16, DType::BF16, 2e-1}})
    for (const auto &[tp, pp] : {std::pair{1u, 1u}, std::pair{3u, 2u}}) {
      TinySpec typed = spec(tp, pp);
      typed.weight_dtype = c.weight;
      typed.activation_dtype = c.activation;
      typed.kv_dtype = c.kv;
      SCOPED_TRACE(std::string(plan::name_of(c.weight)) + " " + plan::name_of(c.activation) + " " +
                   plan::name_of(c.kv) + " tp " + std::to_string(tp));
      expect_reference(TinyModel(typed), c.tolerance);
    }
}

// Logits of every position of `ids`, fed in chunks of the given sizes (the last repeats), alone or beside others.
std::vector<float> all_logits(const TinyModel &model, const std::vector<int32_t> &ids, std::vector<size_t> chunks,
                              bool company, ExecutorOptions options = {}) {
  Driver driver(model, options);
  Sequence mine, other;
  std::vector<float> rows;
  size_t at = 0;
  for (size_t i = 0; at < ids.size(); ++i) {
    const size_t n = std::min(ids.size() - at, chunks[std::min(i, chunks.size() - 1)]);
    const Chunk chunk{&mine, {ids.begin() + static_cast<int64_t>(at), ids.begin() + static_cast<int64_t>(at + n)},
                      Chunk::All};
    std::vector<Chunk> step;
    if (company)
      step.push_back({&other, some_ids(1 + i % 3, model.spec.vocab, static_cast<uint32_t>(i)), Chunk::None});
    step.push_back(chunk);
    const auto result = driver.step(step);
    EXPECT_EQ(result.error, "");
    rows.insert(rows.end(), result.logits.begin(), result.logits.end());
    at += n;
  }
  return rows;
}

void expect_same_bits(const std::vector<float> &a, const std::vector<float> &b, const std::string &what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

TEST(Bits, DependOnTheSequenceAlone) {
  for (const auto &[tp, pp] : {std::pair{1u, 1u}, std::pair{2u, 1u}, std::pair{3u, 2u}})
    for (const DType dtype : {DType::F32, DType::BF16}) {
      TinySpec wide = spec(tp, pp);
      wide.max_logits_rows = 32;
      wide.weight_dtype = wide.kv_dtype = dtype;
      const TinyModel model(wide);
      SCOPED_TRACE("tp " + std::to_string(tp) + " pp " + std::to_string(pp) + " " + plan::name_of(dtype));
      const std::vector<int32_t> ids = some_ids(29, wide.vocab, 5);
      const std::vector<float> once = all_logits(model, ids, {29}, false);
      expect_same_bits(once, all_logits(model, ids, {29}, false), "a second run");
      expect_same_bits(once, all_logits(model, ids, {1}, false), "token by token");
      expect_same_bits(once, all_logits(model, ids, {3, 7, 2}, false), "uneven chunks");
      expect_same_bits(once, all_logits(model, ids, {5, 1}, true), "beside another sequence");
      for (const unsigned threads : {1u, 4u, 7u}) {
        ExecutorOptions options;
        options.threads = threads;
        expect_same_bits(once, all_logits(model, ids, {11, 1}, false, options), std::to_string(threads) + " threads");
      }
    }
}

TEST(Pipeline, StepsOfManySequencesAreInFlightAtOnceAndFinishInOrder) {
  TinySpec deep = spec(2, 3);
  deep.num_pages = 96;
  const TinyModel model(deep);
  Driver driver(model);
  EXPECT_EQ(driver.executor->max_in_flight(), 3u);
  constexpr size_t kSequences = 6, kSteps = 10;
  std::vector<Sequence> sequences(kSequences);
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint64_t>> steps(kSequences);
  for (size_t s = 0; s < kSequences; ++s)
    ids.push_back(some_ids(kSteps, deep.vocab, static_cast<uint32_t>(s)));
  for (size_t i = 0; i < kSteps; ++i)
    for (size_t s = 0; s < kSequences; ++s) {
      const auto made = driver.batch({{&sequences[s], {ids[s][i]}, Chunk::Last}});
      steps[s].push_back(made->id);
      driver.executor->submit(made);
    }
  for (size_t s = 0; s < kSequences; ++s) {
    const std::vector<double> want = model.reference->logits(ids[s]);
    for (size_t i = 0; i < kSteps; ++i) {
      const auto result = driver.wait(steps[s][i]);
      ASSERT_EQ(result.error, "");
      EXPECT_LT(worst(result.logits, want.data() + i * deep.vocab), 1e-4);
    }
  }
  const std::vector<uint64_t> order = driver.order();
  ASSERT_EQ(order.size(), kSequences * kSteps);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Steps, WithoutLogitsFinishWithNone) {
  for (const auto &[tp, pp] : {std::pair{1u, 1u}, std::pair{3u, 2u}}) {
    const TinyModel model(spec(tp, pp));
    Driver driver(model);
    Sequence sequence;
    const std::vector<int32_t> ids = some_ids(12, model.spec.vocab);
    const std::vector<int32_t> most(ids.begin(), ids.end() - 1);
    auto result = driver.step({{&sequence, most, Chunk::None}});
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(result.logits.empty());
    result = driver.step({{&sequence, {ids.back()}, Chunk::Last}});
    EXPECT_LT(worst(result.logits, model.reference->logits(ids).data() + 11 * model.spec.vocab), 1e-4);
  }
}

TEST(Memory, IsWhatThePlanSays) {
  const TinyModel model(spec(3, 2));
  Driver driver(model);
  const auto memory = driver.executor->memory();
  ASSERT_EQ(memory.size(), 6u);
  const auto pages = [](uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; };
  for (uint32_t rank = 0; rank < 6; ++rank) {
    const plan::ProgramT &program = *model.plan.programs[rank];
    EXPECT_EQ(memory[rank].rank, rank);
    EXPECT_EQ(memory[rank].weights, pages(program.weight_bytes));
    EXPECT_EQ(memory[rank].arena, pages(program.arena_bytes));
    EXPECT_EQ(memory[rank].kv, pages(program.kv->bytes));
    EXPECT_GT(memory[rank].workspace, 0u);
  }
}

} // namespace
