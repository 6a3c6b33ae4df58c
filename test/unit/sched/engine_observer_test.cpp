// An engine that is observed says what it did for each step, and gives its steps an observer only then.
#include "runtime/exec/step_observer.h"
#include "test/unit/sched/engine_fixture.h"

#include <algorithm>

using namespace llmrt;
using namespace llmrt::test;

namespace {

class Keeper final : public exec::StepObserver {
public:
  void begin(uint64_t, uint32_t, uint32_t) override {}
  void end(uint64_t, uint32_t, uint32_t) override {}
  void engine_worked(uint64_t step, exec::EngineWork work, double seconds) override {
    EXPECT_GE(seconds, 0);
    EXPECT_LT(seconds, 60);
    std::lock_guard lock(mutex);
    (work == exec::EngineWork::Compose ? composed : work == exec::EngineWork::Results ? results : delivered).push_back(step);
  }
  std::mutex mutex;
  std::vector<uint64_t> composed, results, delivered;
};

TEST(EngineObserver, SeesTheWorkOfEveryStep) {
  Keeper keeper; // outlives the engine
  {
    Harness h(small_model(), {.depth = 2, .samples = true, .ahead = true});
    h.submit(prompt_of(5, 1), sampled(3, 4))->wait();
    ASSERT_TRUE(h.engine->wait_idle(10));
    const uint64_t before = h.engine->stats().steps;
    h.engine->observe(&keeper);
    h.submit(prompt_of(6, 2), sampled(4, 20))->wait();
    ASSERT_TRUE(h.engine->wait_idle(10));
    h.engine->observe(nullptr);
    const uint64_t after = h.engine->stats().steps;
    h.submit(prompt_of(7, 3), sampled(5, 4))->wait();
    h.engine.reset(); // its threads are done
    ASSERT_EQ(keeper.composed.size(), after - before);
    EXPECT_EQ(keeper.results.size(), after - before);
    for (size_t i = 0; i < keeper.composed.size(); ++i)
      EXPECT_EQ(keeper.composed[i], before + 1 + i);
    EXPECT_EQ(keeper.results, keeper.composed);
    ASSERT_FALSE(keeper.delivered.empty());
    EXPECT_TRUE(std::is_sorted(keeper.delivered.begin(), keeper.delivered.end()));
    EXPECT_EQ(keeper.delivered.back(), keeper.composed.back());
  }
}

} // namespace
