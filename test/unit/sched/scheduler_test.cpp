// The policy itself, step by step: who is served, in what order, and who gives way.
#include "test/unit/sched/engine_fixture.h"

#include "runtime/sched/scheduler.h"

using namespace llmrt;
using namespace llmrt::test;
using sched::Request;
using sched::RequestPtr;
using sched::StepWork;

namespace {

RequestPtr request(uint64_t id, size_t prompt, uint32_t max_tokens = 100) {
  EngineRequest r;
  r.prompt = prompt_of(prompt, static_cast<int32_t>(id));
  r.sampling = sampled(1, max_tokens);
  return std::make_shared<Request>(id, std::move(r), 1, std::vector<int32_t>{});
}

class SchedulerTest : public testing::Test {
protected:
  EngineModel model = small_model();
  exec::StepBatch batch;
  std::vector<StepWork> work;

  bool compose(sched::Scheduler &s) {
    ++batch.id;
    return s.compose(batch, work);
  }
  // Gives every request of the step that has no pending token a new one.
  static void finish(sched::Scheduler &s, const std::vector<StepWork> &work) {
    for (const StepWork &w : work) {
      s.returned(w);
      if (w.samples)
        w.request->tokens.push_back(1);
    }
  }
  std::vector<uint64_t> ids() const {
    std::vector<uint64_t> out;
    for (const StepWork &w : work)
      out.push_back(w.request->id);
    return out;
  }
};

TEST_F(SchedulerTest, DecodesFirstThenPromptsInOrderOfArrival) {
  model.max_batched_tokens = 20;
  sched::Scheduler s(model, true, 1);
  s.enqueue(request(1, 5));
  ASSERT_TRUE(compose(s));
  finish(s, work);
  s.enqueue(request(2, 30));
  s.enqueue(request(3, 6));
  ASSERT_TRUE(compose(s)); // 1 decodes, 2 gets the rest of the budget
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(work[1].count, 19u);
  EXPECT_FALSE(work[1].samples);
  EXPECT_EQ(batch.logits_rows, (std::vector<int32_t>{0}));
  finish(s, work);
  ASSERT_TRUE(compose(s)); // 2 ends its prompt before 3 is admitted
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(work[1].count, 11u);
  EXPECT_TRUE(work[1].samples);
  EXPECT_EQ(work[2].count, 6u);
  EXPECT_EQ(batch.context_lens, (std::vector<int32_t>{7, 30, 6}));
  EXPECT_EQ(batch.logits_rows, (std::vector<int32_t>{0, 11, 17}));
  EXPECT_EQ(batch.page_starts, (std::vector<int32_t>{0, 1, 5, 6}));
}

TEST_F(SchedulerTest, NothingInFlightIsScheduledAgain) {
  sched::Scheduler s(model, true, 2);
  s.enqueue(request(1, 5));
  ASSERT_TRUE(compose(s));
  EXPECT_FALSE(compose(s));
  finish(s, {StepWork{.request = s.running()[0].get(), .samples = true}});
  EXPECT_TRUE(compose(s));
}

TEST_F(SchedulerTest, AdmissionIsStrictlyFirstComeFirstServed) {
  model.num_pages = 6;
  sched::Scheduler s(model, true, 1);
  s.enqueue(request(1, 24)); // three pages
  s.enqueue(request(2, 40)); // five: does not fit beside it
  s.enqueue(request(3, 5));  // would fit, but waits its turn
  ASSERT_TRUE(compose(s));
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1}));
  EXPECT_TRUE(s.blocked_on_pages());
  EXPECT_EQ(s.waiting().size(), 2u);
}

TEST_F(SchedulerTest, TheYoungestGivesWayAndComesBackFirst) {
  model.num_pages = 7;
  model.max_batched_tokens = 200;
  sched::Scheduler s(model, false, 1);
  for (uint64_t id : {1, 2, 3})
    s.enqueue(request(id, 16)); // two pages each; one page is free
  s.enqueue(request(4, 16));
  ASSERT_TRUE(compose(s));
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1, 2, 3}));
  finish(s, work);
  ASSERT_TRUE(compose(s)); // 17 tokens each: 1 takes the free page, 2 that of 3
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(s.preemptions(), 1u);
  ASSERT_EQ(s.waiting().size(), 2u);
  EXPECT_EQ(s.waiting()[0]->id, 3u);
  EXPECT_EQ(s.waiting()[0]->computed, 0u);
  EXPECT_EQ(s.waiting()[0]->tokens.size(), 17u); // it kept the token that it had
  EXPECT_EQ(s.pool().available(), 1u);
  finish(s, work);
  RequestPtr first = s.running()[0];
  s.remove(*first);
  ASSERT_TRUE(compose(s)); // 3 needs three pages and one in reserve: four are free
  EXPECT_EQ(ids(), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(work[1].count, 17u);
}

TEST_F(SchedulerTest, ARequestNeverTakesPagesFromAnOlderOne) {
  model.num_pages = 4;
  sched::Scheduler s(model, false, 2);
  s.enqueue(request(1, 8));
  s.enqueue(request(2, 8));
  ASSERT_TRUE(compose(s)); // one each, since two steps share them
  auto first = work;
  ASSERT_TRUE(compose(s));
  auto second = work;
  EXPECT_EQ(first[0].request->id, 1u);
  EXPECT_EQ(second[0].request->id, 2u);
  finish(s, second);
  for (int i = 0; i < 8; ++i) { // 2 grows into the second page
    ASSERT_TRUE(compose(s));
    finish(s, work);
  }
  ASSERT_TRUE(compose(s)); // and the third
  finish(s, work);
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(compose(s));
    finish(s, work);
  }
  EXPECT_FALSE(compose(s)); // the fourth is held by 1, which is in flight, and older
  EXPECT_EQ(s.preemptions(), 0u);
  finish(s, first);
  ASSERT_TRUE(compose(s)); // 1 needs a second page: 2 gives way
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1}));
  EXPECT_EQ(s.preemptions(), 1u);
}

TEST_F(SchedulerTest, StepsOfAPipelineAreOfOneSize) {
  sched::Scheduler s(model, true, 3);
  for (uint64_t id = 1; id <= 10; ++id)
    s.enqueue(request(id, 4));
  std::vector<std::vector<StepWork>> steps;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(compose(s));
    steps.push_back(work);
  }
  EXPECT_EQ(steps[0].size(), 4u);
  EXPECT_EQ(steps[1].size(), 2u); // a third of those that still wait
  for (auto &step : steps)
    finish(s, step);
  for (int round = 0; round < 3; ++round) { // with some rounds the shares settle at 4, 3, 3
    steps.clear();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(compose(s));
      steps.push_back(work);
    }
    for (auto &step : steps)
      finish(s, step);
  }
  for (auto &step : steps) {
    EXPECT_GE(step.size(), 2u);
    EXPECT_LE(step.size(), 4u);
  }
}

TEST_F(SchedulerTest, NobodyIsAdmittedWhoCouldNotBeServed) {
  model.max_logits_rows = 2;
  sched::Scheduler s(model, true, 1);
  for (uint64_t id = 1; id <= 5; ++id)
    s.enqueue(request(id, 3));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(compose(s));
    EXPECT_EQ(ids(), (std::vector<uint64_t>{1, 2}));
    finish(s, work);
  }
  RequestPtr first = s.running()[0];
  s.remove(*first);
  ASSERT_TRUE(compose(s));
  EXPECT_EQ(ids(), (std::vector<uint64_t>{2, 3}));
}

// A budget below the number of running requests goes round them all.
TEST_F(SchedulerTest, TheLeastRecentlyServedGoesFirst) {
  model.max_batched_tokens = 4;
  sched::Scheduler s(model, true, 2);
  for (uint64_t id = 1; id <= 6; ++id)
    s.enqueue(request(id, 1));
  std::map<uint64_t, int> served;
  std::vector<StepWork> before;
  for (int i = 0; i < 60; ++i) { // two in flight, one behind the other
    ASSERT_TRUE(compose(s));
    for (const StepWork &w : work)
      ++served[w.request->id];
    finish(s, before);
    before = work;
  }
  ASSERT_EQ(served.size(), 6u);
  int least = served[1], most = served[1];
  for (auto [id, n] : served) {
    least = std::min(least, n);
    most = std::max(most, n);
  }
  EXPECT_LE(most - least, 4);
}

TEST_F(SchedulerTest, AheadAStepTakesItsIdsFromTheOneInFlight) {
  sched::Scheduler s(model, true, 1);
  s.draw_on_device();
  s.run_ahead();
  s.enqueue(request(1, 5));
  s.enqueue(request(2, 7, 1)); // its first token is its last
  ASSERT_TRUE(compose(s));
  EXPECT_TRUE(batch.from_rows.empty());
  auto first = work;
  s.enqueue(request(3, 4));
  ASSERT_TRUE(compose(s)); // 1 again, and the new one
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(batch.from_rows, (std::vector<int32_t>{0, -1, -1, -1, -1}));
  EXPECT_EQ(batch.ids[0], 0);
  EXPECT_EQ(batch.positions[0], 5);
  EXPECT_EQ(batch.context_lens, (std::vector<int32_t>{6, 4}));
  EXPECT_EQ(batch.sampling[0].counter, 1u);
  EXPECT_EQ(s.running()[0]->in_flight, 2u);
  EXPECT_EQ(s.running()[0]->unknown, 2u);
  auto second = work;
  for (const StepWork &w : first)
    s.returned(w);
  first[0].request->tokens.push_back(1);
  s.remove(*first[1].request);
  ASSERT_TRUE(compose(s));
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(batch.from_rows, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(batch.positions, (std::vector<int32_t>{6, 4}));
}

TEST_F(SchedulerTest, AheadTheYoungestIsLeftOutAndThenGivesWay) {
  model.num_pages = 7;
  sched::Scheduler s(model, false, 1);
  s.draw_on_device();
  s.run_ahead();
  s.enqueue(request(1, 16));
  s.enqueue(request(2, 16));
  s.enqueue(request(3, 9));
  ASSERT_TRUE(compose(s)); // two pages each; one is free
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1, 2, 3}));
  auto first = work;
  ASSERT_TRUE(compose(s)); // 1 takes it; 2 wants one too, and 3, which could go on, is left out
  EXPECT_EQ(ids(), (std::vector<uint64_t>{1}));
  EXPECT_EQ(s.preemptions(), 0u);
  finish(s, first);
  ASSERT_TRUE(compose(s)); // 3 is back, and gives way
  EXPECT_EQ(ids(), (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(batch.from_rows, (std::vector<int32_t>{-1, 0}));
  EXPECT_EQ(s.preemptions(), 1u);
  ASSERT_EQ(s.waiting().size(), 1u);
  EXPECT_EQ(s.waiting()[0]->tokens.size(), 10u);
}

TEST_F(SchedulerTest, RemoveOfARequestInFlightIsRefused) {
  sched::Scheduler s(model, true, 1);
  s.enqueue(request(1, 3));
  ASSERT_TRUE(compose(s));
  EXPECT_THROW(s.remove(*work[0].request), Error);
}

} // namespace
