// What the engine promises to its users, one promise a test, over the fake executor.
#include "test/unit/sched/engine_fixture.h"

#include "runtime/sample/sampler.h"

#include <cmath>
#include <numeric>

using namespace llmrt;
using namespace llmrt::test;

namespace {

TEST(Engine, OneRequestAlone) {
  Harness h(small_model());
  auto prompt = prompt_of(20, 1);
  auto client = h.submit(prompt, sampled(3, 30));
  ASSERT_TRUE(client);
  Received got = client->wait();
  expect_answer(h.model, prompt, sampled(3, 30), got);
  EXPECT_EQ(got.events, 30u);
  EXPECT_TRUE(h.engine->wait_idle(10));
  EngineStats s = h.engine->stats();
  EXPECT_EQ(s.running + s.waiting, 0u);
  EXPECT_EQ(s.pages_used, 0u);
  EXPECT_EQ(s.pages_total, 128u);
  EXPECT_EQ(s.prompt_tokens, 20u);
  EXPECT_EQ(s.generation_tokens, 30u);
  EXPECT_EQ(s.steps, 30u);
  EXPECT_EQ(s.seconds_since_progress, 0);
  EXPECT_EQ(h.engine->memory().size(), 1u);
}

TEST(Engine, PromptLongerThanAStepIsChunked) {
  auto model = small_model();
  model.max_batched_tokens = 16;
  Harness h(model);
  auto prompt = prompt_of(100, 2);
  expect_answer(model, prompt, sampled(1, 5), h.submit(prompt, sampled(1, 5))->wait());
  EXPECT_EQ(h.log->steps, 7u + 4u); // 100 = 6 × 16 + 4; the last chunk gives the first token
}

TEST(Engine, EveryPromptLengthAroundPagesAndChunks) {
  for (unsigned depth : {1u, 3u}) {
    auto model = small_model();
    model.max_batched_tokens = 16;
    Harness h(model, {.depth = depth});
    std::vector<std::shared_ptr<Client>> clients;
    for (size_t n = 1; n <= 40; ++n)
      clients.push_back(h.submit(prompt_of(n, 9), sampled(n, 12)));
    for (size_t n = 1; n <= 40; ++n)
      expect_answer(model, prompt_of(n, 9), sampled(n, 12), clients[n - 1]->wait());
  }
}

TEST(Engine, StopsAtEosAndStopTokens) {
  auto model = small_model();
  model.vocab = 10; // ends come soon
  Harness h(model);
  int stopped = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SamplingParams p = sampled(seed, 40);
    p.ignore_eos = false;
    p.stop_token_ids = {3};
    p.min_tokens = seed % 3 * 4;
    auto prompt = prompt_of(5, static_cast<int32_t>(seed), 10);
    Received got = h.submit(prompt, p)->wait();
    expect_answer(model, prompt, p, got);
    EXPECT_GE(got.tokens.size(), p.min_tokens);
    stopped += *got.finish == FinishReason::Stop;
  }
  EXPECT_GT(stopped, 10);
}

TEST(Engine, SameSeedSameTextInABatchAndAlone) {
  Harness h(small_model());
  auto prompt = prompt_of(30, 5);
  SamplingParams p = sampled(77, 40);
  p.top_p = 0.9f;
  p.frequency_penalty = 0.3f;
  Received alone = h.submit(prompt, p)->wait();
  std::vector<std::shared_ptr<Client>> others;
  for (int i = 0; i < 10; ++i)
    others.push_back(h.submit(prompt_of(11 + i, i), sampled(static_cast<uint64_t>(i), 60)));
  EXPECT_EQ(h.submit(prompt, p)->wait().tokens, alone.tokens);
  for (auto &o : others)
    o->wait();
  EXPECT_NE(h.submit(prompt, sampled(78, 40))->wait().tokens, alone.tokens);
}

TEST(Engine, WithoutASeedRequestsDiffer) {
  Harness h(small_model());
  SamplingParams p = sampled(0, 20);
  p.seed.reset();
  EXPECT_NE(h.submit({1, 2, 3}, p)->wait().tokens, h.submit({1, 2, 3}, p)->wait().tokens);
}

TEST(Engine, PrefixCacheSkipsWhatIsKnown) {
  auto model = small_model();
  Harness h(model);
  auto prompt = prompt_of(40, 4);
  EXPECT_EQ(h.submit(prompt, sampled(1, 3))->wait().cached_tokens, 0u);
  Received again = h.submit(prompt, sampled(1, 3))->wait();
  EXPECT_EQ(again.cached_tokens, 32u); // of 40 = 5 pages, one token must be computed: 4 pages
  expect_answer(model, prompt, sampled(1, 3), again);
  auto other = prompt;
  other[17] ^= 1;
  Received forked = h.submit(other, sampled(1, 3))->wait();
  EXPECT_EQ(forked.cached_tokens, 16u);
  expect_answer(model, other, sampled(1, 3), forked);
  // The output of one request is the prefix of the next, as in a conversation.
  auto longer = prompt_of(20, 6);
  Received first = h.submit(longer, sampled(2, 20))->wait();
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  longer.push_back(1);
  EXPECT_EQ(h.submit(longer, sampled(2, 2))->wait().cached_tokens, 32u); // 39 tokens were computed
  EngineStats s = h.engine->stats();
  EXPECT_EQ(s.prefix_queries, 40u + 40 + 40 + 20 + 41);
  EXPECT_EQ(s.prefix_hits, 32u + 16 + 32);
}

TEST(Engine, PrefixCacheOff) {
  EngineOptions options;
  options.prefix_cache = false;
  Harness h(small_model(), {}, options);
  auto prompt = prompt_of(40, 4);
  h.submit(prompt, sampled(1, 3))->wait();
  EXPECT_EQ(h.submit(prompt, sampled(1, 3))->wait().cached_tokens, 0u);
  EXPECT_EQ(h.engine->stats().prefix_queries, 0u);
}

TEST(Engine, SeveralCompletionsOfOnePromptShareItsPages) {
  std::atomic<bool> gate = false;
  auto model = small_model();
  Harness h(model, {.gate = &gate});
  auto prompt = prompt_of(50, 8);
  std::vector<std::shared_ptr<Client>> clients;
  auto blocker = h.submit({1}, sampled(1, 1)); // holds the first step, so that all of them wait together
  for (uint64_t i = 0; i < 8; ++i)
    clients.push_back(h.submit(prompt, sampled(i, 10)));
  gate = true;
  blocker->wait();
  size_t cached = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    Received got = clients[i]->wait();
    expect_answer(model, prompt, sampled(i, 10), got);
    cached += got.cached_tokens;
  }
  EXPECT_EQ(cached, 7u * 48); // one computes, seven wait a step and share its six full pages
}

TEST(Engine, PreemptionChangesNothingButTime) {
  auto model = small_model();
  model.num_pages = 20; // 160 tokens for 8 requests that grow to 60 each
  for (bool cache : {true, false}) {
    EngineOptions options;
    options.prefix_cache = cache;
    Harness h(model, {}, options);
    std::vector<std::shared_ptr<Client>> clients;
    for (int32_t i = 0; i < 8; ++i) {
      SamplingParams p = sampled(static_cast<uint64_t>(i), 50);
      p.presence_penalty = 0.5f;
      clients.push_back(h.submit(prompt_of(10, i), p));
    }
    for (int32_t i = 0; i < 8; ++i) {
      SamplingParams p = sampled(static_cast<uint64_t>(i), 50);
      p.presence_penalty = 0.5f;
      expect_answer(model, prompt_of(10, i), p, clients[i]->wait());
    }
    h.engine->wait_idle(10);
    EXPECT_GT(h.engine->stats().preemptions, 0u);
    EXPECT_EQ(h.engine->stats().pages_used, 0u);
  }
}

TEST(Engine, ARequestThatFillsThePoolRunsAndALargerOneIsRefused) {
  auto model = small_model();
  model.num_pages = 10;
  Harness h(model);
  auto prompt = prompt_of(31, 1);
  expect_answer(model, prompt, sampled(1, 50),
                h.submit(prompt, sampled(1, 50))->wait()); // 80 slots and one token
  EXPECT_FALSE(h.submit(prompt, sampled(1, 51)));
  EXPECT_EQ(h.last_error, SubmitError::Invalid);
  EXPECT_NE(h.last_message.find("11 KV pages"), std::string::npos) << h.last_message;
  EXPECT_NE(h.last_message.find("the plan has 10"), std::string::npos) << h.last_message;
}

TEST(Engine, RefusesWhatCannotRun) {
  Harness h(small_model());
  auto refused = [&](std::vector<int32_t> prompt, SamplingParams p, const char *part) {
    EXPECT_FALSE(h.submit(std::move(prompt), p));
    EXPECT_EQ(h.last_error, SubmitError::Invalid);
    EXPECT_NE(h.last_message.find(part), std::string::npos) << h.last_message;
  };
  refused({}, sampled(1, 1), "empty");
  refused({1, 50}, sampled(1, 1), "token 1 of the prompt is 50");
  refused({-1}, sampled(1, 1), "-1");
  refused(prompt_of(200, 1), sampled(1, 57), "257");
  SamplingParams p = sampled(1, 0xFFFFFFFFu);
  refused({1}, p, "4294967296");
  p = sampled(1, 5);
  p.top_p = 0;
  refused({1}, p, "top_p");
}

TEST(Engine, QueueIsBounded) {
  std::atomic<bool> gate = false;
  auto model = small_model();
  model.max_num_seqs = 2;
  EngineOptions options;
  options.max_queued_requests = 3;
  Harness h(model, {.gate = &gate}, options);
  std::vector<std::shared_ptr<Client>> accepted;
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    if (auto c = h.submit({1, 2}, sampled(1, 4))) {
      accepted.push_back(c);
    } else {
      EXPECT_EQ(h.last_error, SubmitError::QueueFull);
      EXPECT_NE(h.last_message.find("--max-queued-requests"), std::string::npos);
      ++refused;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GE(accepted.size(),
            4u); // one runs since the first step held the rest up; three wait beyond the free seats
  EXPECT_LE(accepted.size(), 5u);
  EXPECT_GE(refused, 15);
  gate = true;
  for (auto &c : accepted)
    EXPECT_EQ(c->wait().tokens.size(), 4u);
}

TEST(Engine, SeveralHundredRequestsQueue) {
  Harness h(small_model());
  std::vector<std::shared_ptr<Client>> clients;
  for (int i = 0; i < 600; ++i)
    clients.push_back(h.submit(prompt_of(5 + i % 30, i), sampled(static_cast<uint64_t>(i), 5)));
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(clients[i]);
    expect_answer(h.model, prompt_of(5 + i % 30, i), sampled(static_cast<uint64_t>(i), 5),
                  clients[i]->wait());
  }
  EXPECT_EQ(h.log->max_seqs, 16u);
  EXPECT_GT(h.log->mixed_steps, 0u);
}

TEST(Engine, CancelWaitingRunningAndInFlight) {
  std::atomic<bool> gate = true;
  auto model = small_model();
  model.max_num_seqs = 1;
  model.max_model_len = 5000;
  model.num_pages = 625;
  Harness h(model, {.max_delay_us = 1000, .gate = &gate});
  uint64_t running = 0, waiting = 0;
  auto a = h.submit({1}, sampled(1, 4000), &running);
  auto b = h.submit({2}, sampled(1, 4000), &waiting);
  ASSERT_TRUE(a->wait_tokens(5));
  h.engine->cancel(waiting);
  Received got_b = b->wait();
  EXPECT_EQ(*got_b.finish, FinishReason::Cancelled);
  EXPECT_TRUE(got_b.tokens.empty());
  gate = false; // a step is, or comes to be, in flight
  h.engine->cancel(running);
  gate = true;
  Received got_a = a->wait();
  EXPECT_EQ(*got_a.finish, FinishReason::Cancelled);
  EXPECT_LT(got_a.tokens.size(), 4000u);
  h.engine->cancel(running); // finished and unknown ids are fine
  h.engine->cancel(123456);
  EXPECT_TRUE(h.engine->wait_idle(10));
  EXPECT_EQ(h.engine->stats().pages_used, 0u);
  EXPECT_EQ(*h.submit({3}, sampled(1, 2))->wait().finish, FinishReason::Length);
}

TEST(Engine, CallbacksMayCallBack) {
  auto model = small_model();
  model.max_model_len = 5000;
  model.num_pages = 625;
  Harness h(model, {.max_delay_us = 1000});
  auto second = std::make_shared<Client>();
  auto first = std::make_shared<Client>();
  std::atomic<uint64_t> id = 0;
  EngineRequest r;
  r.prompt = {1, 2, 3};
  r.sampling = sampled(1, 4000);
  r.on_event = [&](RequestEvent &&e) {
    const bool done = e.finish.has_value();
    first->on_event(std::move(e));
    h.engine->stats();
    if (first->now().tokens.size() >= 3)
      h.engine->cancel(id);
    if (done) {
      EngineRequest next;
      next.prompt = {4};
      next.sampling = sampled(1, 2);
      next.on_event = [&](RequestEvent &&e) { second->on_event(std::move(e)); };
      SubmitError error;
      std::string message;
      h.engine->submit(std::move(next), error, message);
    }
  };
  SubmitError error;
  std::string message;
  id = h.engine->submit(std::move(r), error, message);
  Received got = first->wait();
  EXPECT_LT(got.tokens.size(), 4000u);
  EXPECT_EQ(second->wait().tokens.size(), 2u);
}

TEST(Engine, AThrowingCallbackCancelsItsRequestOnly) {
  Harness h(small_model());
  EngineRequest r;
  r.prompt = {1};
  r.sampling = sampled(1, 200);
  r.on_event = [](RequestEvent &&) { throw std::runtime_error("gone"); };
  SubmitError error;
  std::string message;
  h.engine->submit(std::move(r), error, message);
  EXPECT_EQ(h.submit({5}, sampled(1, 20))->wait().tokens.size(), 20u);
  EXPECT_TRUE(h.engine->wait_idle(10));
  EXPECT_EQ(h.engine->stats().pages_used, 0u);
}

// Steps go on while a callback dawdles; what has gathered then comes in order, tokens of all kinds.
TEST(Engine, ASlowCallbackGetsEverythingInOrder) {
  for (bool ahead : {false, true}) {
    Harness h(small_model(), {.depth = ahead ? 2u : 1u, .samples = ahead, .ahead = ahead});
    std::vector<std::shared_ptr<Client>> clients;
    std::vector<SamplingParams> sampling;
    for (int i = 0; i < 6; ++i) {
      EngineRequest r;
      r.prompt = prompt_of(4, i);
      r.sampling = sampled(static_cast<uint64_t>(i), 30);
      if (i % 3 == 2)
        r.sampling.logprobs = 1;
      sampling.push_back(r.sampling);
      clients.push_back(std::make_shared<Client>());
      r.on_event = [client = clients.back(), i](RequestEvent &&e) {
        if (i == 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
        client->on_event(std::move(e));
      };
      SubmitError error;
      std::string message;
      h.engine->submit(std::move(r), error, message);
    }
    EXPECT_TRUE(h.engine->wait_idle(30)); // only once all is delivered
    for (int i = 0; i < 6; ++i) {
      const Received got = clients[static_cast<size_t>(i)]->now();
      expect_answer(h.model, prompt_of(4, i), sampling[static_cast<size_t>(i)], got);
      EXPECT_EQ(got.events, 30u);
    }
  }
}

TEST(Engine, ExecutorErrorEndsEverythingWithItsSentence) {
  for (unsigned depth : {1u, 3u})
    for (bool throws : {false, true}) {
      FakeOptions fake;
      fake.depth = depth;
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
        EXPECT_NE(got.error.find("fake executor"), std::string::npos) << got.error;
        EXPECT_FALSE(got.event_after_finish);
      }
      EXPECT_TRUE(h.engine->wait_idle(10));
      EXPECT_NE(h.engine->stats().fatal.find("fake executor"), std::string::npos);
      EXPECT_EQ(h.engine->stats().pages_used, 0u);
      EXPECT_FALSE(h.submit({1}, sampled(1, 1)));
      EXPECT_EQ(h.last_error, SubmitError::Dead);
    }
}

TEST(Engine, NaNEndsOneRequestOnly) {
  auto model = small_model();
  Harness h(model, {.nan_after_token = 49});
  SamplingParams other = sampled(1, 60);
  other.logit_bias = {{49, -100.0f}};
  auto healthy = h.submit({1}, other);
  Received bad = h.submit({1, 49}, sampled(1, 10))->wait();
  EXPECT_EQ(*bad.finish, FinishReason::Error);
  EXPECT_NE(bad.error.find("NaN"), std::string::npos) << bad.error;
  EXPECT_TRUE(bad.tokens.empty());
  EXPECT_EQ(*healthy->wait().finish, FinishReason::Length);
  EXPECT_EQ(h.engine->stats().fatal, "");
}

TEST(Engine, DrainFinishesWhatItAccepted) {
  Harness h(small_model());
  auto client = h.submit({1}, sampled(1, 100));
  h.engine->drain();
  EXPECT_FALSE(h.submit({1}, sampled(1, 1)));
  EXPECT_EQ(h.last_error, SubmitError::Draining);
  EXPECT_TRUE(h.engine->wait_idle(30));
  Received got = client->now();
  EXPECT_EQ(got.tokens.size(), 100u);
}

TEST(Engine, WaitIdleGivesUp) {
  std::atomic<bool> gate = false;
  Harness h(small_model(), {.gate = &gate});
  EXPECT_TRUE(h.engine->wait_idle(0));
  auto client = h.submit({1}, sampled(1, 1));
  EXPECT_FALSE(h.engine->wait_idle(0.02));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GT(h.engine->stats().seconds_since_progress, 0.02);
  gate = true;
  EXPECT_TRUE(h.engine->wait_idle(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(h.engine->stats().seconds_since_progress, 0);
}

TEST(Engine, DestructionCancelsWhatRuns) {
  auto client = std::shared_ptr<Client>(), queued = client;
  {
    auto model = small_model();
    model.max_num_seqs = 1;
    Harness h(model, {.max_delay_us = 1000});
    client = h.submit({1}, sampled(1, 200));
    queued = h.submit({1}, sampled(1, 200));
    client->wait_tokens(2);
  }
  EXPECT_EQ(*client->now().finish, FinishReason::Cancelled);
  EXPECT_EQ(*queued->now().finish, FinishReason::Cancelled);
}

TEST(Engine, LogprobsOfOutput) {
  Harness h(small_model());
  SamplingParams p = sampled(4, 10);
  p.logprobs = 3;
  auto prompt = prompt_of(12, 3);
  Received got = h.submit(prompt, p)->wait();
  expect_answer(h.model, prompt, p, got);
  uint64_t sum = 0;
  std::vector<int32_t> history = prompt;
  for (const TokenOutput &t : got.outputs) {
    sum = 0;
    for (size_t i = 0; i < history.size(); ++i)
      sum += fake_value(history[i], static_cast<int64_t>(i));
    std::vector<float> logits(h.model.vocab);
    fake_logits(sum, logits.size(), logits.data());
    sample::Scratch scratch;
    TokenLogprobs expected = sample::token_logprobs(logits, t.id, 3, scratch);
    ASSERT_TRUE(t.logprobs);
    EXPECT_EQ(t.logprobs->logprob, expected.logprob);
    EXPECT_EQ(t.logprobs->rank, expected.rank);
    EXPECT_EQ(t.logprobs->top, expected.top);
    history.push_back(t.id);
  }
}

// Prompt scores are right whatever the chunks, the rows of a step and preemptions.
TEST(Engine, LogprobsOfThePrompt) {
  for (uint32_t rows : {1u, 2u, 5u, 64u})
    for (uint32_t max_tokens : {0u, 1u, 9u}) {
      auto model = small_model();
      model.max_logits_rows = rows;
      model.num_pages = 14;
      Harness h(model);
      auto warm = prompt_of(33, 70);
      h.submit(warm, sampled(1, 2))->wait(); // the cache knows the prompt and must not be used
      std::vector<std::shared_ptr<Client>> clients;
      SamplingParams p = sampled(4, max_tokens);
      p.prompt_logprobs = 2;
      for (size_t n : {33u, 1u, 8u, 20u})
        clients.push_back(h.submit(prompt_of(n, 70), p));
      auto other = h.submit(prompt_of(9, 1), sampled(1, 30));
      size_t at = 0;
      for (size_t n : {33u, 1u, 8u, 20u}) {
        auto prompt = prompt_of(n, 70);
        Received got = clients[at++]->wait();
        expect_answer(model, prompt, p, got);
        EXPECT_EQ(got.cached_tokens, 0u);
        ASSERT_EQ(got.prompt_logprobs.size(), n);
        EXPECT_FALSE(got.prompt_logprobs[0].has_value());
        uint64_t sum = 0;
        for (size_t i = 0; i + 1 < n; ++i) {
          sum += fake_value(prompt[i], static_cast<int64_t>(i));
          std::vector<float> logits(model.vocab);
          fake_logits(sum, logits.size(), logits.data());
          sample::Scratch scratch;
          TokenLogprobs expected = sample::token_logprobs(logits, prompt[i + 1], 2, scratch);
          ASSERT_TRUE(got.prompt_logprobs[i + 1]) << i;
          EXPECT_EQ(got.prompt_logprobs[i + 1]->logprob, expected.logprob) << i;
          EXPECT_EQ(got.prompt_logprobs[i + 1]->top, expected.top) << i;
        }
      }
      expect_answer(model, prompt_of(9, 1), sampled(1, 30), other->wait());
    }
}

TEST(Engine, OnLogitsSeesTheRawRows) {
  Harness h(small_model());
  auto prompt = prompt_of(6, 3);
  EngineRequest r;
  auto client = std::make_shared<Client>();
  std::vector<std::vector<float>> rows;
  r.prompt = prompt;
  r.sampling = sampled(1, 5);
  r.sampling.logit_bias = {{3, 50.0f}};
  r.on_event = [client](RequestEvent &&e) { client->on_event(std::move(e)); };
  r.on_logits = [&](const float *x, size_t n) { rows.emplace_back(x, x + n); };
  SubmitError error;
  std::string message;
  h.engine->submit(std::move(r), error, message);
  Received got = client->wait();
  EXPECT_EQ(got.tokens, std::vector<int32_t>(5, 3));
  ASSERT_EQ(rows.size(), 5u);
  uint64_t sum = 0;
  for (size_t i = 0; i < prompt.size(); ++i)
    sum += fake_value(prompt[i], static_cast<int64_t>(i));
  std::vector<float> expected(50);
  fake_logits(sum, 50, expected.data());
  EXPECT_EQ(rows[0], expected);
}

TEST(Engine, FillsThePipelineWithEvenSteps) {
  for (unsigned depth : {2u, 4u}) {
    Harness h(small_model(), {.depth = depth, .max_delay_us = 300});
    std::vector<std::shared_ptr<Client>> clients;
    for (int i = 0; i < 16; ++i)
      clients.push_back(h.submit(prompt_of(4, i), sampled(static_cast<uint64_t>(i), 50)));
    for (int i = 0; i < 16; ++i)
      expect_answer(h.model, prompt_of(4, i), sampled(static_cast<uint64_t>(i), 50), clients[i]->wait());
    EXPECT_EQ(h.log->max_in_flight, depth);
    // 16 requests of 50 steps each in shares of 16 / depth; the beginning and the end are less even.
    EXPECT_LT(h.log->steps, depth * 50 * 3 / 2);
  }
}

TEST(Engine, LimitsOfZeroAreRefused) {
  auto model = small_model();
  model.page_size = 0;
  EXPECT_THROW(Harness{model}, Error);
  model = small_model();
  model.eos_token_ids = {50};
  EXPECT_THROW(Harness{model}, Error);
}

} // namespace
