// Steps that follow others: written out, they must be what a scheduler composes that makes every step whole, to the byte, whatever
// requests do; and a batch that only goes on must be made of nothing else.
#include "test/unit/exec/following.h"
#include "test/unit/sched/engine_fixture.h"

#include "runtime/sched/scheduler.h"

#include <deque>
#include <random>

using namespace llmrt;
using namespace llmrt::test;
using sched::Request;
using sched::RequestPtr;
using sched::StepWork;

namespace {

// The engine's part around a scheduler that runs a step ahead: steps return in order, and tokens are what a hash says.
class Side {
public:
  Side(const EngineModel &model, bool follows, bool prefix_cache) : model_(model), scheduler(model, prefix_cache, 1) {
    scheduler.draw_on_device();
    scheduler.run_ahead();
    if (follows)
      scheduler.follow();
  }

  void submit(uint64_t id, const std::vector<int32_t> &prompt, const SamplingParams &sampling) {
    EngineRequest r;
    r.prompt = prompt;
    r.sampling = sampling;
    auto request = std::make_shared<Request>(id, std::move(r), id * 77, std::vector<int32_t>{3});
    requests[id] = request;
    scheduler.enqueue(request);
  }
  void cancel(uint64_t id) {
    const auto at = requests.find(id);
    if (at == requests.end() || at->second->over)
      return;
    at->second->cancelled = true;
    if (!at->second->in_flight)
      end(*at->second);
  }
  // The next step, written out; none: nothing can run.
  bool compose(uint64_t id) {
    exec::StepBatch batch;
    batch.id = id;
    std::vector<StepWork> work;
    if (!scheduler.compose(batch, work))
      return false;
    if (batch.follows) {
      EXPECT_EQ(batch.follows, whole.id);
      EXPECT_TRUE(work.empty());
      work = flying.back();
      whole = written_out(std::move(whole), batch, model_.page_size);
      ++followed;
    } else {
      EXPECT_TRUE(batch.new_pages.empty());
      whole = std::move(batch);
    }
    flying.push_back(std::move(work));
    return true;
  }
  // The oldest step in flight.
  void finish() {
    const std::vector<StepWork> work = std::move(flying.front());
    flying.pop_front();
    for (const StepWork &w : work) {
      Request &r = *w.request;
      scheduler.returned(w);
      const auto token = static_cast<int32_t>(fake_mix(r.id, r.tokens.size()) % 40);
      if (r.over || r.cancelled || (w.samples && token == 3))
        end(r);
      else if (w.samples && (r.tokens.push_back(token), r.output_tokens() >= r.max_tokens))
        end(r);
      else if (w.completes && !w.samples) // max_tokens 0
        end(r);
    }
  }

  const EngineModel model_;
  sched::Scheduler scheduler;
  std::map<uint64_t, RequestPtr> requests;
  std::deque<std::vector<StepWork>> flying;
  exec::StepBatch whole; // the step composed last
  uint64_t followed = 0;

private:
  void end(Request &r) {
    r.over = true;
    if (!r.in_flight)
      forget(r);
  }
  void forget(Request &r) {
    const uint64_t id = r.id;
    scheduler.remove(r);
    requests.erase(id);
  }
};

// All that a batch says to an executor; of structs what they hold, not their padding.
void expect_equal(const exec::StepBatch &a, const exec::StepBatch &b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.seq_starts, b.seq_starts);
  EXPECT_EQ(a.context_lens, b.context_lens);
  EXPECT_EQ(a.page_starts, b.page_starts);
  EXPECT_EQ(a.pages, b.pages);
  EXPECT_EQ(a.slot_mapping, b.slot_mapping);
  EXPECT_EQ(a.logits_rows, b.logits_rows);
  EXPECT_EQ(a.from_rows, b.from_rows);
  ASSERT_EQ(a.sampling.size(), b.sampling.size());
  const auto parts = [](const exec::RowSampling &r) {
    return std::tuple(r.draw, r.temperature, r.top_p, r.min_p, r.top_k, r.seed, r.counter);
  };
  for (size_t i = 0; i < a.sampling.size(); ++i)
    EXPECT_EQ(parts(a.sampling[i]), parts(b.sampling[i])) << "row " << i;
}

struct Load {
  uint32_t pages, page_size, seqs, tokens, rows;
  bool cache;
  unsigned host_read; // one request in so many is sampled by the host; 0: none
};

class Following : public testing::TestWithParam<Load> {};

TEST_P(Following, IsWhatWouldBeComposedWhole) {
  const Load load = GetParam();
  EngineModel model = small_model();
  model.num_pages = load.pages, model.page_size = load.page_size, model.max_num_seqs = load.seqs;
  model.max_batched_tokens = load.tokens, model.max_logits_rows = load.rows;
  model.max_model_len = std::min(model.max_model_len, load.pages * load.page_size);
  uint64_t followed = 0, steps = 0, preemptions = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Side one(model, true, load.cache), other(model, false, load.cache);
    uint64_t next_request = 0, next_step = 1;
    for (int round = 0; round < 600; ++round) {
      if (round < 500 && random() % (seed % 2 ? 4 : 1 + load.seqs) == 0 && one.scheduler.waiting().size() < 6) {
        const size_t prompt = 1 + random() % std::min(40u, model.max_model_len / 2);
        SamplingParams p = sampled(random(), static_cast<uint32_t>(random() % (model.max_model_len - prompt)));
        p.temperature = random() % 2 ? 1.0f : 0.0f;
        if (load.host_read && random() % load.host_read == 0)
          p.frequency_penalty = 0.5f;
        const auto ids = prompt_of(prompt, static_cast<int32_t>(random() % 4));
        ++next_request;
        one.submit(next_request, ids, p), other.submit(next_request, ids, p);
      }
      if (random() % 20 == 0 && next_request) {
        const uint64_t id = 1 + random() % next_request;
        one.cancel(id), other.cancel(id);
      }
      if (one.flying.size() == 2 || (!one.flying.empty() && random() % 8 == 0))
        one.finish(), other.finish();
      if (one.flying.size() < 2) {
        const bool composed = one.compose(next_step);
        ASSERT_EQ(composed, other.compose(next_step)) << "step " << next_step;
        if (composed) {
          expect_equal(one.whole, other.whole);
          ASSERT_FALSE(testing::Test::HasFailure()) << "step " << next_step << ", seed " << seed;
          ++next_step;
        } else if (!one.flying.empty()) {
          one.finish(), other.finish();
        }
      }
      one.scheduler.pool().check();
      ASSERT_EQ(one.scheduler.pool().available(), other.scheduler.pool().available());
      ASSERT_EQ(one.scheduler.pool().cached(), other.scheduler.pool().cached());
      ASSERT_EQ(one.scheduler.preemptions(), other.scheduler.preemptions());
      ASSERT_EQ(one.scheduler.prefix_hits(), other.scheduler.prefix_hits());
      ASSERT_EQ(one.scheduler.blocked_on_pages(), other.scheduler.blocked_on_pages());
      ASSERT_EQ(one.scheduler.running().size(), other.scheduler.running().size());
    }
    EXPECT_EQ(other.followed, 0u);
    followed += one.followed, steps += next_step, preemptions += one.scheduler.preemptions();
  }
  EXPECT_GT(followed, steps / 20);
  EXPECT_LT(followed, steps);
  if (load.pages * load.page_size < 300) {
    EXPECT_GT(preemptions, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Loads, Following,
                         testing::Values(Load{400, 8, 16, 64, 16, true, 0},   // roomy
                                         Load{400, 8, 16, 64, 16, true, 9},   // some read by the host
                                         Load{24, 8, 16, 64, 16, true, 0},    // short of pages
                                         Load{24, 8, 16, 64, 16, false, 0},   // and without the cache
                                         Load{400, 4, 8, 12, 8, true, 0},     // prompts in small chunks
                                         Load{120, 4, 12, 12, 7, true, 0},    // fewer rows than requests
                                         Load{200, 1, 6, 64, 6, true, 0},     // a page a token
                                         Load{400, 8, 3, 64, 3, true, 0}));   // others wait for a seat

// 300 requests of the same length: each opens its pages in the same steps as all the others.
TEST(FollowingAlone, ABatchThatOnlyGoesOnIsWholeOnce) {
  EngineModel model = small_model();
  model.max_num_seqs = model.max_logits_rows = 300, model.max_batched_tokens = 4000, model.num_pages = 3000;
  Side side(model, true, true);
  for (uint64_t id = 1; id <= 300; ++id)
    side.submit(id, prompt_of(10, static_cast<int32_t>(id)), sampled(1, 41));
  for (uint64_t step = 1; step <= 41; ++step) {
    ASSERT_TRUE(side.compose(step));
    EXPECT_EQ(side.followed, step < 3 ? 0 : step - 2); // the prompts; the first step of single tokens; and then nothing new
    if (side.flying.size() == 2)
      for (const StepWork &w : side.flying.front()) { // no token of it ends one
        side.scheduler.returned(w);
        w.request->tokens.push_back(1);
      }
    if (side.flying.size() == 2)
      side.flying.pop_front();
  }
  exec::StepBatch batch;
  batch.id = 42;
  std::vector<StepWork> work;
  EXPECT_FALSE(side.scheduler.compose(batch, work)); // all have their last tokens under way
}

} // namespace
