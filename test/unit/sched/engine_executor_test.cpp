// The engine over the real executor: tiny models on several ranks, greedy answers of a ragged batch against
// the double-precision reference, and the promise that neither batching nor preemption changes a single
// token.
#include "runtime/sched/engine.h"
#include "test/unit/exec/driver.h"
#include "test/unit/sched/engine_fixture.h"

using namespace llmrt;
using namespace llmrt::test;
using exec::testing::TinyModel;
using plan::testing::TinySpec;

namespace {

struct Running {
  explicit Running(const TinySpec &spec, bool cache = true) : model(spec) {
    EngineOptions options;
    options.plan_folder = model.folder.path();
    options.prefix_cache = cache;
    engine = Engine::create(plan::testing::load(model.plan), options);
  }
  std::shared_ptr<Client> submit(const std::vector<int32_t> &prompt, const SamplingParams &sampling) {
    auto client = std::make_shared<Client>();
    EngineRequest r;
    r.prompt = prompt;
    r.sampling = sampling;
    r.on_event = [client](RequestEvent &&e) { client->on_event(std::move(e)); };
    SubmitError error;
    std::string message;
    engine->submit(std::move(r), error, message);
    EXPECT_EQ(error, SubmitError::None) << message;
    return client;
  }
  TinyModel model;
  std::unique_ptr<Engine> engine;
};

SamplingParams greedy(uint32_t max_tokens) {
  SamplingParams p;
  p.temperature = 0;
  p.max_tokens = max_tokens;
  p.ignore_eos = true;
  p.prompt_logprobs = 0;
  return p;
}

TEST(EngineWithExecutor, GreedyAnswersFollowTheReference) {
  for (auto [tp, pp] : std::vector<std::pair<uint32_t, uint32_t>>{{1, 1}, {2, 1}, {1, 4}, {2, 2}}) {
    TinySpec spec;
    spec.tp = tp;
    spec.pp = pp;
    Running run(spec);
    std::vector<std::vector<int32_t>> prompts;
    std::vector<std::shared_ptr<Client>> clients;
    for (int32_t i = 0; i < 9; ++i) {
      prompts.push_back(prompt_of(static_cast<size_t>(1 + i * 5), i, spec.vocab));
      clients.push_back(run.submit(prompts.back(), greedy(12)));
    }
    for (size_t i = 0; i < clients.size(); ++i) {
      Received got = clients[i]->wait();
      ASSERT_EQ(got.tokens.size(), 12u) << got.error;
      std::vector<int32_t> history = prompts[i];
      history.insert(history.end(), got.tokens.begin(), got.tokens.end());
      const std::vector<double> logits = run.model.reference->logits(history);
      for (size_t t = 0; t < got.tokens.size(); ++t) {
        const double *row = logits.data() + (prompts[i].size() - 1 + t) * spec.vocab;
        EXPECT_GE(row[got.tokens[t]], *std::max_element(row, row + spec.vocab) - 1e-3) << i << " " << t;
      }
      for (size_t t = 1; t < prompts[i].size(); ++t) {
        const double *row = logits.data() + (t - 1) * spec.vocab;
        const double max = *std::max_element(row, row + spec.vocab);
        double sum = 0;
        for (size_t v = 0; v < spec.vocab; ++v)
          sum += std::exp(row[v] - max);
        EXPECT_NEAR(got.prompt_logprobs.at(t).value().logprob, row[prompts[i][t]] - max - std::log(sum),
                    1e-3);
      }
    }
    EXPECT_TRUE(run.engine->wait_idle(10));
    EXPECT_EQ(run.engine->stats().pages_used, 0u);
    EXPECT_EQ(run.engine->memory().size(), tp * pp);
  }
}

TEST(EngineWithExecutor, PreemptionAndBatchingChangeNoToken) {
  TinySpec roomy;
  roomy.tp = 2;
  roomy.pp = 2;
  roomy.max_num_seqs = 8;
  TinySpec tight = roomy;
  tight.num_pages = 16; // 64 tokens for eight requests of up to 50
  Running alone(roomy, false), crowded(tight);
  std::vector<std::shared_ptr<Client>> clients;
  auto sampling = [](int32_t i) {
    SamplingParams p = sampled(static_cast<uint64_t>(i), 30);
    p.top_p = 0.95f;
    return p;
  };
  for (int32_t i = 0; i < 12; ++i)
    clients.push_back(crowded.submit(prompt_of(static_cast<size_t>(3 + i), i / 2, roomy.vocab), sampling(i)));
  for (int32_t i = 0; i < 12; ++i) {
    auto expected =
        alone.submit(prompt_of(static_cast<size_t>(3 + i), i / 2, roomy.vocab), sampling(i))->wait();
    EXPECT_EQ(clients[static_cast<size_t>(i)]->wait().tokens, expected.tokens) << i;
  }
  EXPECT_GT(crowded.engine->stats().preemptions, 0u);
}

TEST(EngineWithExecutor, MissingWeightsAreAnError) {
  TinyModel model{TinySpec{}};
  EngineOptions options;
  options.plan_folder = model.folder.path("elsewhere");
  EXPECT_THROW(Engine::create(plan::testing::load(model.plan), options), Error);
}

} // namespace
