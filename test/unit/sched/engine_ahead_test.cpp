// Scheduling one step ahead: an engine whose executor draws tokens and takes ids from the step before must give every
// request exactly what it gets without, however requests end, and must really be one step ahead while they do not.
#include "test/unit/sched/engine_fixture.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

// All with an executor that takes steps that follow others, and with one that takes whole ones only.
class EngineAhead : public testing::TestWithParam<bool> {
protected:
  const FakeOptions fake_{.depth = 2, .samples = true, .ahead = true, .follows = GetParam()};

  // With a delay, so that the engine usually has its next step queued before the fake looks for it.
  FakeOptions slow_ahead() const {
    FakeOptions fake = fake_;
    fake.max_delay_us = 300;
    return fake;
  }
  // The device is never done before the next step is queued, unless none comes.
  FakeOptions patient_ahead() const {
    FakeOptions fake = fake_;
    fake.patience_us = 300000;
    return fake;
  }
};

INSTANTIATE_TEST_SUITE_P(Steps, EngineAhead, testing::Bool(), [](const auto &info) { return info.param ? "Follow" : "Whole"; });

TEST_P(EngineAhead, ARequestAloneIsAlwaysAStepAhead) {
  Harness h(small_model(), patient_ahead());
  auto prompt = prompt_of(20, 1);
  Received got = h.submit(prompt, sampled(3, 30))->wait();
  expect_answer(h.model, prompt, sampled(3, 30), got);
  EXPECT_EQ(got.events, 30u);
  EXPECT_TRUE(h.engine->wait_idle(10));
  EngineStats s = h.engine->stats();
  EXPECT_EQ(s.steps, 30u); // its last token is known to be the last: no step too many
  EXPECT_EQ(s.generation_tokens, 30u);
  EXPECT_EQ(s.pages_used, 0u);
  EXPECT_EQ(h.log->ahead_steps, 29u);
  EXPECT_EQ(h.log->followed, GetParam() ? 28u : 0u); // not the first token after the prompt
  EXPECT_EQ(h.log->max_in_flight, 2u);
}

TEST_P(EngineAhead, TurnedOffNothingIsAhead) {
  EngineOptions options;
  options.run_ahead = false;
  Harness h(small_model(), slow_ahead(), options);
  auto prompt = prompt_of(20, 1);
  expect_answer(h.model, prompt, sampled(3, 30), h.submit(prompt, sampled(3, 30))->wait());
  EXPECT_EQ(h.log->ahead_steps, 0u);
  EXPECT_EQ(h.log->drawn, 30u);
  EXPECT_EQ(h.log->max_in_flight, 1u);
}

// Prompts, seeds, filters and lengths of all kinds, all at once: the same text with and without.
TEST_P(EngineAhead, SameSeedSameText) {
  auto model = small_model();
  model.max_batched_tokens = 24; // prompts come in chunks, beside decodes
  for (bool ahead : {true, false}) {
    EngineOptions options;
    options.run_ahead = ahead;
    Harness h(model, slow_ahead(), options);
    std::vector<std::shared_ptr<Client>> clients;
    auto params = [](int i) {
      SamplingParams p = sampled(static_cast<uint64_t>(i * 7), static_cast<uint32_t>(1 + i * 5 % 40));
      p.temperature = i % 4 == 0 ? 0.0f : 0.5f + 0.1f * static_cast<float>(i % 7);
      p.top_p = i % 3 == 0 ? 0.8f : 1.0f;
      p.top_k = i % 5 == 0 ? 12 : 0;
      return p;
    };
    for (int i = 0; i < 40; ++i)
      clients.push_back(h.submit(prompt_of(static_cast<size_t>(1 + i * 3 % 50), i), params(i)));
    for (int i = 0; i < 40; ++i)
      expect_answer(model, prompt_of(static_cast<size_t>(1 + i * 3 % 50), i), params(i), clients[i]->wait());
    EXPECT_EQ(h.log->ahead_steps > 0, ahead);
    EXPECT_GT(h.log->mixed_steps, 0u);
  }
}

// The step behind an end of text carries a row too many, which must leave no trace.
TEST_P(EngineAhead, EndTokensInTheMiddle) {
  auto model = small_model();
  model.vocab = 10; // ends come soon
  Harness h(model, slow_ahead());
  auto steady = h.submit(prompt_of(5, 99, 10), sampled(1, 200));
  int stopped = 0;
  size_t tokens = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SamplingParams p = sampled(seed, 40);
    p.ignore_eos = false;
    p.stop_token_ids = {3};
    auto prompt = prompt_of(5, static_cast<int32_t>(seed), 10);
    Received got = h.submit(prompt, p)->wait();
    expect_answer(model, prompt, p, got);
    stopped += *got.finish == FinishReason::Stop;
    tokens += got.tokens.size() + (*got.finish == FinishReason::Stop);
  }
  EXPECT_GT(stopped, 15);
  expect_answer(model, prompt_of(5, 99, 10), sampled(1, 200), steady->wait());
  EXPECT_TRUE(h.engine->wait_idle(10));
  EXPECT_EQ(h.engine->stats().pages_used, 0u);
  EXPECT_EQ(h.engine->stats().generation_tokens, tokens + 200);
  EXPECT_GT(h.log->drawn, tokens + 200); // rows were dropped
  EXPECT_GT(h.log->ahead_steps, 0u);
}

TEST_P(EngineAhead, CancelInTheMiddle) {
  auto model = small_model();
  model.max_model_len = 5000;
  model.num_pages = 2000;
  Harness h(model, slow_ahead());
  auto steady = h.submit({1}, sampled(1, 150));
  std::vector<std::shared_ptr<Client>> cancelled;
  for (int32_t i = 0; i < 10; ++i) {
    uint64_t id = 0;
    auto client = h.submit(prompt_of(9, i), sampled(static_cast<uint64_t>(i), 4000), &id);
    ASSERT_TRUE(client->wait_tokens(static_cast<size_t>(1 + i)));
    h.engine->cancel(id);
    Received got = client->wait();
    EXPECT_EQ(*got.finish, FinishReason::Cancelled);
    FakeAnswer expected = fake_generate(model, prompt_of(9, i), sampled(static_cast<uint64_t>(i), 4000));
    expected.tokens.resize(got.tokens.size());
    EXPECT_EQ(got.tokens, expected.tokens);
    cancelled.push_back(client);
  }
  expect_answer(model, {1}, sampled(1, 150), steady->wait());
  EXPECT_TRUE(h.engine->wait_idle(10));
  EXPECT_EQ(h.engine->stats().pages_used, 0u);
  for (auto &client : cancelled)
    EXPECT_FALSE(client->now().event_after_finish);
}

TEST_P(EngineAhead, MaxTokensOfEveryLength) {
  auto model = small_model();
  Harness h(model, slow_ahead());
  std::vector<std::shared_ptr<Client>> clients;
  for (uint32_t n = 0; n <= 20; ++n)
    clients.push_back(h.submit(prompt_of(7, 3), sampled(n, n)));
  uint64_t tokens = 0;
  for (uint32_t n = 0; n <= 20; ++n) {
    expect_answer(model, prompt_of(7, 3), sampled(n, n), clients[n]->wait());
    tokens += n;
  }
  EXPECT_EQ(h.log->drawn, tokens); // not a row too many
  // A request that fills the context to its last token.
  auto prompt = prompt_of(200, 4);
  expect_answer(model, prompt, sampled(1, 56), h.submit(prompt, sampled(1, 56))->wait());
}

TEST_P(EngineAhead, PreemptionChangesNothingButTime) {
  auto model = small_model();
  model.num_pages = 20; // 160 tokens for 8 requests that grow to 60 each
  for (bool cache : {true, false}) {
    EngineOptions options;
    options.prefix_cache = cache;
    Harness h(model, slow_ahead(), options);
    std::vector<std::shared_ptr<Client>> clients;
    for (int32_t i = 0; i < 8; ++i)
      clients.push_back(h.submit(prompt_of(10, i), sampled(static_cast<uint64_t>(i), 50)));
    for (int32_t i = 0; i < 8; ++i)
      expect_answer(model, prompt_of(10, i), sampled(static_cast<uint64_t>(i), 50), clients[i]->wait());
    h.engine->wait_idle(10);
    EXPECT_GT(h.engine->stats().preemptions, 0u);
    EXPECT_EQ(h.engine->stats().pages_used, 0u);
    EXPECT_GT(h.log->ahead_steps, 0u);
  }
}

// The output of one request is the prefix of the next, to the last page that is known to be full.
TEST_P(EngineAhead, OutputEntersThePrefixCache) {
  auto model = small_model();
  Harness h(model, slow_ahead());
  for (uint32_t n = 8; n <= 30; ++n) {
    auto prompt = prompt_of(20, static_cast<int32_t>(n));
    Received first = h.submit(prompt, sampled(n, n))->wait();
    ASSERT_TRUE(h.engine->wait_idle(10)); // its pages are back
    prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
    prompt.push_back(1);
    Received second = h.submit(prompt, sampled(2, 9))->wait();
    EXPECT_EQ(second.cached_tokens, (20 + n - 1) / 8 * 8); // the last token was never computed
    expect_answer(model, prompt, sampled(2, 9), second);
  }
}

// What a dropped row wrote must never be taken for a prefix: prompts that go on with the end token, and with others.
TEST_P(EngineAhead, ADroppedTokenIsNoPrefix) {
  auto model = small_model();
  model.vocab = 10;
  model.page_size = 2;
  model.num_pages = 400;
  Harness h(model, slow_ahead());
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SamplingParams p = sampled(seed, 30);
    p.ignore_eos = false;
    auto prompt = prompt_of(4, static_cast<int32_t>(seed), 10);
    Received got = h.submit(prompt, p)->wait();
    expect_answer(model, prompt, p, got);
    prompt.insert(prompt.end(), got.tokens.begin(), got.tokens.end());
    for (int32_t next : {7, 1}) {
      auto longer = prompt;
      longer.insert(longer.end(), {next, 5, 5});
      expect_answer(model, longer, sampled(seed, 6), h.submit(longer, sampled(seed, 6))->wait());
    }
  }
}

// Requests that the host samples run at their own pace, and the others with them.
TEST_P(EngineAhead, RowsThatTheHostReads) {
  auto model = small_model();
  Harness h(model, slow_ahead());
  SamplingParams penalised = sampled(5, 30), scored = sampled(6, 30), prompt_scored = sampled(7, 10);
  penalised.frequency_penalty = 0.5f;
  scored.logprobs = 2;
  prompt_scored.prompt_logprobs = 1;
  auto a = h.submit(prompt_of(9, 1), sampled(4, 60));
  auto b = h.submit(prompt_of(9, 2), penalised);
  auto c = h.submit(prompt_of(9, 3), scored);
  auto d = h.submit(prompt_of(9, 4), prompt_scored);
  expect_answer(model, prompt_of(9, 2), penalised, b->wait());
  Received got = c->wait();
  expect_answer(model, prompt_of(9, 3), scored, got);
  for (const TokenOutput &t : got.outputs)
    EXPECT_TRUE(t.logprobs.has_value());
  got = d->wait();
  expect_answer(model, prompt_of(9, 4), prompt_scored, got);
  EXPECT_EQ(got.prompt_logprobs.size(), 9u);
  expect_answer(model, prompt_of(9, 1), sampled(4, 60), a->wait());
  // Alone again, it ran ahead; with a host-sampled one beside it, neither waited more than a step for the other.
  EXPECT_GT(h.log->ahead_steps, 0u);
  EXPECT_LE(h.engine->stats().steps, 66u);
}

TEST_P(EngineAhead, NaNEndsOneRequestOnly) {
  auto model = small_model();
  model.vocab = 10;
  FakeOptions fake = slow_ahead();
  fake.nan_after_token = 9;
  Harness h(model, fake);
  SamplingParams greedy = sampled(1, 100);
  greedy.logit_bias = {{9, -100.0f}};
  auto healthy = h.submit({1}, greedy);
  int errors = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Received got = h.submit({1, 2}, sampled(seed, 60))->wait();
    if (*got.finish == FinishReason::Error) {
      ++errors;
      EXPECT_NE(got.error.find("NaN"), std::string::npos) << got.error;
      EXPECT_EQ(got.tokens.back(), 9);
    }
  }
  EXPECT_GT(errors, 5);
  EXPECT_EQ(*healthy->wait().finish, FinishReason::Length);
  EXPECT_TRUE(h.engine->wait_idle(10));
  EXPECT_EQ(h.engine->stats().fatal, "");
  EXPECT_EQ(h.engine->stats().pages_used, 0u);
}

TEST_P(EngineAhead, ExecutorErrorsEndEverything) {
  for (bool throws : {false, true}) {
    FakeOptions fake = slow_ahead();
    (throws ? fake.throw_at_step : fake.fail_at_step) = 10;
    auto model = small_model();
    model.max_num_seqs = 4;
    Harness h(model, fake);
    std::vector<std::shared_ptr<Client>> clients;
    for (int i = 0; i < 12; ++i)
      if (auto c = h.submit(prompt_of(5, i), sampled(1, 200)))
        clients.push_back(c);
    for (auto &c : clients) {
      Received got = c->wait();
      EXPECT_EQ(*got.finish, FinishReason::Error);
      EXPECT_FALSE(got.event_after_finish);
    }
    EXPECT_TRUE(h.engine->wait_idle(10));
    EXPECT_NE(h.engine->stats().fatal.find("fake executor"), std::string::npos);
    EXPECT_EQ(h.engine->stats().pages_used, 0u);
  }
}

TEST_P(EngineAhead, DrainAndDestruction) {
  auto client = std::shared_ptr<Client>();
  {
    Harness h(small_model(), slow_ahead());
    client = h.submit({1}, sampled(1, 60));
    h.engine->drain();
    EXPECT_TRUE(h.engine->wait_idle(30));
    EXPECT_EQ(client->now().tokens.size(), 60u);
    EXPECT_EQ(h.engine->stats().pages_used, 0u);
  }
  {
    Harness h(small_model(), slow_ahead());
    client = h.submit({1}, sampled(1, 200));
    client->wait_tokens(2);
  }
  EXPECT_EQ(*client->now().finish, FinishReason::Cancelled);
}

} // namespace
