// An engine over the fake executor, and a client that collects what its requests receive.
#pragma once

#include "test/unit/sched/fake_executor.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

namespace llmrt::test {

struct Received {
  std::vector<int32_t> tokens;
  std::vector<TokenOutput> outputs;
  std::optional<FinishReason> finish;
  int32_t stop_token = -1;
  std::string error;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs;
  uint32_t cached_tokens = 0;
  size_t events = 0;
  bool event_after_finish = false;
};

// Events of one request. Outlives the request through shared ownership.
class Client {
public:
  void on_event(RequestEvent &&e) {
    std::lock_guard lock(mutex_);
    received_.event_after_finish |= received_.finish.has_value();
    ++received_.events;
    for (TokenOutput &t : e.tokens) {
      received_.tokens.push_back(t.id);
      received_.outputs.push_back(std::move(t));
    }
    if (!e.prompt_logprobs.empty())
      received_.prompt_logprobs = std::move(e.prompt_logprobs);
    received_.cached_tokens = e.cached_tokens;
    if (e.finish) {
      received_.finish = e.finish;
      received_.stop_token = e.stop_token;
      received_.error = e.error;
    }
    changed_.notify_all();
  }
  // Waits for the end; a test that hangs fails here.
  Received wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return received_.finish.has_value(); }));
    return received_;
  }
  bool wait_tokens(size_t n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return received_.tokens.size() >= n || received_.finish.has_value(); });
  }
  Received now() {
    std::lock_guard lock(mutex_);
    return received_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Received received_;
};

inline EngineModel small_model() {
  EngineModel m;
  m.max_model_len = 256;
  m.max_num_seqs = 16;
  m.max_batched_tokens = 64;
  m.max_logits_rows = 16;
  m.page_size = 8;
  m.num_pages = 128;
  m.vocab = 50;
  m.eos_token_ids = {7};
  return m;
}

struct Harness {
  explicit Harness(const EngineModel &model, FakeOptions fake = {}, EngineOptions options = {})
      : model(model) {
    engine = create_engine(model, options, [&](exec::Executor::StepDone done) {
      return std::make_unique<FakeExecutor>(model, fake, log, std::move(done));
    });
  }
  ~Harness() {
    engine.reset();
    for (const std::string &v : log->violations)
      ADD_FAILURE() << v;
  }

  std::shared_ptr<Client> submit(std::vector<int32_t> prompt, const SamplingParams &sampling,
                                 uint64_t *id = nullptr) {
    auto client = std::make_shared<Client>();
    EngineRequest r;
    r.prompt = std::move(prompt);
    r.sampling = sampling;
    r.on_event = [client](RequestEvent &&e) { client->on_event(std::move(e)); };
    last_error = SubmitError::None;
    uint64_t given = engine->submit(std::move(r), last_error, last_message);
    if (id)
      *id = given;
    return last_error == SubmitError::None ? client : nullptr;
  }

  EngineModel model;
  std::shared_ptr<FakeLog> log = std::make_shared<FakeLog>();
  std::unique_ptr<Engine> engine;
  SubmitError last_error = SubmitError::None;
  std::string last_message;
};

inline std::vector<int32_t> prompt_of(size_t n, int32_t seed, size_t vocab = 50) {
  std::vector<int32_t> ids(n);
  for (size_t i = 0; i < n; ++i)
    ids[i] = static_cast<int32_t>(fake_mix(static_cast<uint64_t>(seed), i) % vocab);
  return ids;
}

inline SamplingParams sampled(uint64_t seed, uint32_t max_tokens) {
  SamplingParams p;
  p.seed = seed;
  p.max_tokens = max_tokens;
  p.ignore_eos = true;
  return p;
}

inline void expect_answer(const EngineModel &model, const std::vector<int32_t> &prompt,
                          const SamplingParams &sampling, const Received &got) {
  FakeAnswer expected = fake_generate(model, prompt, sampling);
  EXPECT_EQ(got.tokens, expected.tokens);
  ASSERT_TRUE(got.finish.has_value());
  EXPECT_EQ(static_cast<int>(*got.finish), static_cast<int>(expected.finish)) << got.error;
  EXPECT_EQ(got.stop_token, expected.stop_token);
  EXPECT_FALSE(got.event_after_finish);
}

} // namespace llmrt::test
