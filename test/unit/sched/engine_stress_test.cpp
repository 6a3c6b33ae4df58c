// Random load over many shapes of engine: several clients submit and cancel at random while pages are short,
// and every answer must still be exactly the one that its prompt, parameters and seed define.
#include "test/unit/sched/engine_fixture.h"

#include <random>

using namespace llmrt;
using namespace llmrt::test;

namespace {

struct Shape {
  unsigned depth;
  uint32_t pages, page_size, seqs, tokens, rows;
  bool cache;
  unsigned delay_us;
  bool ahead = false, blocks = false, follows = false;
};

struct Sent {
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  std::shared_ptr<Client> client;
};

class EngineStress : public testing::TestWithParam<Shape> {};

TEST_P(EngineStress, EveryAnswerIsExact) {
  const Shape shape = GetParam();
  EngineModel model = small_model();
  model.max_model_len = 120;
  model.num_pages = shape.pages;
  model.page_size = shape.page_size;
  model.max_num_seqs = shape.seqs;
  model.max_batched_tokens = shape.tokens;
  model.max_logits_rows = shape.rows;
  EngineOptions options;
  options.prefix_cache = shape.cache;
  options.max_queued_requests = 50;
  uint64_t preemptions = 0, hits = 0;
  {
    Harness h(model,
              {.depth = shape.depth, .samples = shape.ahead, .ahead = shape.ahead, .follows = shape.follows, .blocks = shape.blocks,
               .max_delay_us = shape.delay_us},
              options);
    std::vector<Sent> sent[3];
    auto client_thread = [&](int which) {
      std::mt19937 rng(static_cast<uint32_t>(which) + 100 * shape.depth + shape.pages);
      for (int i = 0; i < 120; ++i) {
        Sent s;
        // A few families of prompts with shared beginnings.
        const size_t n = 1 + rng() % 60;
        s.prompt = prompt_of(n, static_cast<int32_t>(rng() % 4));
        if (rng() % 2)
          s.prompt.back() = static_cast<int32_t>(rng() % model.vocab);
        s.sampling = sampled(rng(), static_cast<uint32_t>(1 + rng() % 59));
        s.sampling.ignore_eos = rng() % 2;
        if (rng() % 4 == 0)
          s.sampling.temperature = 0;
        const uint32_t rare = shape.ahead ? 10 : 1; // rows that the host reads are not run ahead of
        if (rng() % (4 * rare) == 0)
          s.sampling.repetition_penalty = 1.2f;
        if (rng() % (6 * rare) == 0)
          s.sampling.prompt_logprobs = 1;
        if (rng() % 8 == 0)
          s.sampling.max_tokens = 0;
        const uint64_t slots = s.prompt.size() + std::max(1u, s.sampling.max_tokens) - 1;
        const bool fits = (slots + model.page_size - 1) / model.page_size <= model.num_pages;
        s.client = std::make_shared<Client>();
        uint64_t id = 0;
        for (;;) {
          EngineRequest r;
          r.prompt = s.prompt;
          r.sampling = s.sampling;
          r.on_event = [c = s.client](RequestEvent &&e) { c->on_event(std::move(e)); };
          SubmitError error;
          std::string message;
          id = h.engine->submit(std::move(r), error, message);
          if (error == SubmitError::QueueFull) {
            std::this_thread::sleep_for(std::chrono::microseconds(500));
            continue;
          }
          ASSERT_EQ(error == SubmitError::None, fits) << message;
          break;
        }
        if (!fits)
          continue;
        if (rng() % 5 == 0) {
          if (rng() % 2)
            std::this_thread::sleep_for(std::chrono::microseconds(rng() % 2000));
          h.engine->cancel(id);
        }
        sent[which].push_back(std::move(s));
      }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back(client_thread, t);
    for (auto &t : threads)
      t.join();
    for (auto &list : sent)
      for (Sent &s : list) {
        Received got = s.client->wait();
        ASSERT_TRUE(got.finish);
        FakeAnswer expected = fake_generate(model, s.prompt, s.sampling);
        if (*got.finish == FinishReason::Cancelled) {
          ASSERT_LE(got.tokens.size(), expected.tokens.size());
          expected.tokens.resize(got.tokens.size());
          EXPECT_EQ(got.tokens, expected.tokens);
        } else {
          expect_answer(model, s.prompt, s.sampling, got);
        }
      }
    EXPECT_TRUE(h.engine->wait_idle(30));
    EngineStats s = h.engine->stats();
    EXPECT_EQ(s.fatal, "");
    EXPECT_EQ(s.pages_used, 0u);
    EXPECT_EQ(s.running + s.waiting, 0u);
    preemptions = s.preemptions;
    hits = s.prefix_hits;
    if (shape.ahead) {
      EXPECT_GT(h.log->ahead_steps, 0u);
      EXPECT_EQ(h.log->followed > 0, shape.follows);
    }
  }
  if (shape.pages * shape.page_size <= 160 && shape.seqs > 2 && shape.rows > 1 && shape.pages > 2) {
    EXPECT_GT(preemptions, 0u);
  }
  if (shape.cache && shape.page_size < 60) { // the longest prompt
    EXPECT_GT(hits, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EngineStress,
                         testing::Values(Shape{1, 128, 8, 16, 64, 16, true, 0}, // roomy
                                         Shape{1, 20, 8, 16, 64, 16, true, 0},  // short of pages
                                         Shape{1, 20, 8, 16, 64, 16, false, 0}, // and without the cache
                                         Shape{1, 40, 4, 8, 8, 1, true,
                                               0}, // a budget and rows below the sequences
                                         Shape{2, 30, 4, 16, 32, 4, true, 100},  // two stages
                                         Shape{3, 16, 8, 12, 64, 16, true, 100}, // three, very short of pages
                                         Shape{4, 36, 4, 16, 16, 16, true, 50},  // four
                                         Shape{4, 160, 1, 16, 64, 8, true, 0},   // a page a token
                                         Shape{4, 12, 16, 3, 64, 2, false, 50}, // fewer sequences than stages
                                         Shape{1, 2, 64, 16, 128, 16, true, 0}, // two pages in all
                                         Shape{2, 128, 8, 16, 64, 16, true, 0, true},   // a step ahead: roomy
                                         Shape{2, 20, 8, 16, 64, 16, true, 100, true},  // short of pages
                                         Shape{2, 20, 8, 16, 64, 16, false, 0, true},   // and without the cache
                                         Shape{2, 40, 4, 8, 8, 1, true, 0, true},       // few tokens and rows a step
                                         Shape{2, 160, 1, 16, 64, 8, true, 50, true},   // a page a token
                                         Shape{2, 2, 64, 16, 128, 16, true, 0, true},   // two pages in all
                                         // Of executors that may have to wait for a step to be handed over.
                                         Shape{1, 20, 8, 16, 64, 16, true, 0, false, true},
                                         Shape{3, 16, 8, 12, 64, 16, true, 100, false, true},
                                         Shape{2, 20, 8, 16, 64, 16, true, 100, true, true},
                                         // Of executors that take steps that follow others.
                                         Shape{2, 128, 8, 16, 64, 16, true, 0, true, false, true},
                                         Shape{2, 20, 8, 16, 64, 16, true, 100, true, false, true},
                                         Shape{2, 40, 4, 8, 24, 8, true, 0, true, true, true},
                                         Shape{2, 160, 1, 16, 64, 8, true, 50, true, false, true}),
                         [](const auto &info) {
                           const Shape &s = info.param;
                           return "depth" + std::to_string(s.depth) + "_pages" + std::to_string(s.pages) +
                                  "x" + std::to_string(s.page_size) + "_seqs" + std::to_string(s.seqs) +
                                  "_rows" + std::to_string(s.rows) + (s.cache ? "" : "_nocache") +
                                  (s.ahead ? "_ahead" : "") + (s.blocks ? "_blocks" : "") + (s.follows ? "_follows" : "");
                         });

} // namespace
