// The loop around devices that run ahead, with a device that is made up: steps are launched before earlier ones end, are
// collected in order, and every failure reaches the caller.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <random>

#include "runtime/exec/step_loop.h"
#include "runtime/support/error.h"

using namespace llmrt;
using namespace llmrt::exec;
using namespace std::chrono_literals;

namespace {

StepLimits limits() {
  StepLimits l;
  l.max_model_len = 1000, l.max_num_seqs = 4, l.max_batched_tokens = 16, l.max_logits_rows = 4;
  l.page_size = 16, l.num_pages = 8, l.vocab = 100;
  return l;
}

// One sequence, one token, drawn.
std::shared_ptr<StepBatch> batch(uint64_t id, bool from_before = false) {
  auto b = std::make_shared<StepBatch>();
  *b = {id, {0}, {0}, {0, 1}, {1}, {0, 1}, {3}, {48}, {0}, {RowSampling{true}}, {}};
  if (from_before)
    b->from_rows = {0};
  return b;
}

// Each rank's queue of launched steps. A step ends when the test says so.
struct Device {
  std::mutex mutex;
  std::deque<uint64_t> queued;
  std::vector<uint64_t> launched, finished;
  size_t most_queued = 0;
};

struct Rig {
  Rig(uint32_t ranks, unsigned in_flight = 2) : devices(ranks), world(make_world(ranks)) {
    StepLoop::Options options;
    options.limits = limits();
    options.ranks = ranks;
    options.in_flight = in_flight;
    options.output_rank = ranks - 1;
    options.page_tables = false;
    options.launch_step = [this](uint32_t rank, const Step &step) {
      if (step.batch->id == fail_launch_of)
        throw Error("the device refuses step " + std::to_string(step.batch->id));
      if (launches)
        launches(rank, step);
      Device &d = devices[rank];
      std::lock_guard lock(d.mutex);
      d.queued.push_back(step.batch->id);
      d.launched.push_back(step.batch->id);
      d.most_queued = std::max(d.most_queued, d.queued.size());
    };
    options.poll_step = [this](uint32_t rank, const Step &step, LogitsView &view) {
      Device &d = devices[rank];
      std::lock_guard lock(d.mutex);
      if (d.queued.empty() || d.queued.front() != step.batch->id)
        throw Error("step " + std::to_string(step.batch->id) + " is polled out of turn");
      if (step.batch->id == hang_at && hung++ > 1000)
        throw Error("the device hangs");
      if (step.batch->id > may_finish || step.batch->id == hang_at)
        return false;
      d.queued.pop_front();
      d.finished.push_back(step.batch->id);
      view.rows = 1;
      return true;
    };
    options.on_done = [this](const StepBatch &b, const LogitsView &view, const std::string &error) {
      {
        std::lock_guard lock(mutex);
        done.push_back(b.id);
        errors.push_back(error);
        EXPECT_EQ(view.rows, error.empty() ? 1u : 0u);
      }
      if (then)
        then();
    };
    loop = std::make_unique<StepLoop>(std::move(options), *world);
  }
  static std::unique_ptr<comm::HostWorld> make_world(uint32_t ranks) {
    comm::HostWorldOptions options;
    options.ranks = ranks;
    options.groups.push_back({"all", {}});
    for (uint32_t r = 0; r < ranks; ++r)
      options.groups[0].ranks.push_back(r);
    return comm::HostWorld::create(options);
  }
  template <typename F> bool within(F &&what) {
    for (int i = 0; i < 20000; ++i) {
      if (what())
        return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }
  bool wait_launched(uint32_t rank, size_t n) {
    return within([&] { std::lock_guard lock(devices[rank].mutex); return devices[rank].launched.size() >= n; });
  }
  bool wait_done(size_t n) {
    return within([&] { std::lock_guard lock(mutex); return done.size() >= n; });
  }

  std::vector<Device> devices;
  std::function<void(uint32_t, const Step &)> launches;
  std::function<void()> then; // at the end of on_done
  std::atomic<uint64_t> may_finish{0};
  uint64_t fail_launch_of = 0, hang_at = 0;
  std::atomic<int> hung{0};
  std::mutex mutex;
  std::vector<uint64_t> done;
  std::vector<std::string> errors;
  std::unique_ptr<comm::HostWorld> world;
  std::unique_ptr<StepLoop> loop;
};

TEST(StepLoopAhead, AStepIsLaunchedWhileTheOneBeforeRuns) {
  Rig rig(2);
  rig.loop->submit(batch(1));
  rig.loop->submit(batch(2, true));
  for (uint32_t rank : {0u, 1u})
    EXPECT_TRUE(rig.wait_launched(rank, 2));
  std::this_thread::sleep_for(70ms); // long enough for the ranks to doze
  EXPECT_TRUE(rig.done.empty());
  rig.may_finish = 1;
  EXPECT_TRUE(rig.wait_done(1));
  rig.loop->submit(batch(3, true));
  EXPECT_TRUE(rig.wait_launched(0, 3));
  EXPECT_EQ(rig.done, (std::vector<uint64_t>{1}));
  rig.may_finish = 3;
  EXPECT_TRUE(rig.wait_done(3));
  EXPECT_EQ(rig.done, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(rig.errors, (std::vector<std::string>{"", "", ""}));
}

// What ranks do together while they launch meets, since all launch in one order.
TEST(StepLoopAhead, RanksThatMeetWhileLaunching) {
  Rig rig(3);
  rig.launches = [&](uint32_t rank, const Step &step) {
    comm::Communicator &c = rig.world->rank(rank);
    c.begin_step(step.batch->id);
    float sum = static_cast<float>(step.batch->id);
    c.all_reduce(0, 0, &sum, 1, 1, 1);
    EXPECT_EQ(sum, 3 * static_cast<float>(step.batch->id));
  };
  rig.may_finish = 1000;
  for (uint64_t id = 1; id <= 200; ++id)
    rig.loop->submit(batch(id, id > 1));
  EXPECT_TRUE(rig.wait_done(200));
  for (Device &d : rig.devices) {
    EXPECT_TRUE(rig.within([&] { std::lock_guard lock(d.mutex); return d.finished.size() == 200; }));
    EXPECT_EQ(d.launched, d.finished);
    EXPECT_LE(d.most_queued, 2u);
  }
  for (const std::string &error : rig.errors)
    EXPECT_EQ(error, "");
}

// The thread that hands results on submits where the loop accepts a step at once; another one does where it does not, since that
// thread's rank may be waited for by those that still hold the slot.
TEST(StepLoopAhead, ResultsMayBringTheNextStep) {
  for (uint32_t ranks : {1u, 3u}) {
    Rig rig(ranks);
    rig.launches = [&](uint32_t rank, const Step &step) {
      float sum = 1;
      rig.world->rank(rank).begin_step(step.batch->id);
      rig.world->rank(rank).all_reduce(0, 0, &sum, 1, 1, 1);
    };
    rig.may_finish = 1000;
    std::atomic<uint64_t> next{3}, left_to_others{0};
    uint64_t brought = 0, at_once = 0;
    rig.then = [&] {
      if (brought++ >= 298)
        return;
      if (left_to_others > 0 || !rig.loop->accepts()) {
        ++left_to_others;
        return;
      }
      rig.loop->submit(batch(next++, true));
      ++at_once;
    };
    EXPECT_TRUE(rig.loop->accepts());
    rig.loop->submit(batch(1));
    rig.loop->submit(batch(2, true));
    EXPECT_TRUE(rig.within([&] {
      for (; left_to_others > 0; --left_to_others)
        rig.loop->submit(batch(next++, true));
      std::lock_guard lock(rig.mutex);
      return rig.done.size() == 300;
    }));
    rig.loop.reset();
    if (ranks == 1) {
      EXPECT_EQ(at_once, 298u);
    }
    for (const std::string &error : rig.errors)
      EXPECT_EQ(error, "");
  }
}

TEST(StepLoopAhead, AcceptsNothingWhileTwoStepsAreUnderWay) {
  Rig rig(1);
  rig.loop->submit(batch(1));
  EXPECT_TRUE(rig.loop->accepts());
  rig.loop->submit(batch(2, true));
  EXPECT_FALSE(rig.loop->accepts());
  rig.may_finish = 1;
  EXPECT_TRUE(rig.wait_done(1));
  EXPECT_TRUE(rig.loop->accepts());
}

TEST(StepLoopAhead, AFailedLaunchAndAHangEndTheWorld) {
  for (bool hang : {false, true}) {
    Rig rig(2);
    rig.may_finish = 1000;
    (hang ? rig.hang_at : rig.fail_launch_of) = 2;
    for (uint64_t id = 1; id <= 4; ++id)
      rig.loop->submit(batch(id));
    EXPECT_TRUE(rig.wait_done(4));
    EXPECT_EQ(rig.done, (std::vector<uint64_t>{1, 2, 3, 4}));
    for (size_t i = 1; i < 4; ++i)
      EXPECT_NE(rig.errors[i].find("the device"), std::string::npos) << rig.errors[i];
  }
}

TEST(StepLoopAhead, EndsWithStepsUnderWay) {
  Rig rig(2);
  rig.loop->submit(batch(1));
  rig.loop->submit(batch(2));
  EXPECT_TRUE(rig.wait_launched(1, 2));
  rig.loop.reset();
  EXPECT_EQ(rig.done, (std::vector<uint64_t>{1, 2}));
  EXPECT_NE(rig.errors[0].find("shut down"), std::string::npos);
}

std::string refusal(Rig &rig, std::shared_ptr<StepBatch> b) {
  try {
    rig.loop->submit(std::move(b));
  } catch (const Error &e) {
    return e.what();
  }
  return "";
}

TEST(StepLoopAhead, TokensThatNobodyDrawsAreRefused) {
  Rig rig(1);
  rig.may_finish = 1000;
  EXPECT_NE(refusal(rig, batch(1, true)).find("does not draw"), std::string::npos); // there was no step
  auto plain = batch(1);
  plain->sampling.clear();
  rig.loop->submit(plain);
  EXPECT_NE(refusal(rig, batch(2, true)).find("does not draw"), std::string::npos);
  rig.loop->submit(batch(2));
  auto beyond = batch(3);
  beyond->from_rows = {1};
  EXPECT_NE(refusal(rig, beyond).find("row 1 of the logits"), std::string::npos);
  auto sizes = batch(3);
  sizes->from_rows = {0, 0};
  EXPECT_NE(refusal(rig, sizes).find("from_rows has 2 entries where 1"), std::string::npos);
  EXPECT_EQ(refusal(rig, batch(3, true)), "");
  EXPECT_TRUE(rig.wait_done(3));
}

TEST(StepLoopAhead, StepsFollowOthers) {
  Rig rig(2);
  rig.may_finish = 1000;
  const auto following = [](uint64_t id, std::vector<NewPage> pages = {}) {
    auto b = std::make_shared<StepBatch>();
    b->id = id, b->follows = id - 1, b->new_pages = std::move(pages);
    return b;
  };
  EXPECT_NE(refusal(rig, following(2)).find("follows step 1, and the one before it is step 0"), std::string::npos);
  rig.loop->submit(batch(1));
  EXPECT_NE(refusal(rig, following(2, {{0, 1}})).find("begins no page"), std::string::npos);
  for (uint64_t id = 2; id <= 16; ++id) // positions 1 to 15
    EXPECT_EQ(refusal(rig, following(id)), "");
  EXPECT_NE(refusal(rig, following(17)).find("begins a page of 16 tokens with position 16"), std::string::npos);
  EXPECT_EQ(refusal(rig, following(17, {{0, 7}})), "");
  EXPECT_EQ(refusal(rig, following(18)), "");
  EXPECT_EQ(refusal(rig, batch(19, true)), ""); // a whole one takes what a step that follows has drawn
  EXPECT_EQ(refusal(rig, following(20)), "");
  EXPECT_TRUE(rig.wait_done(20));
  EXPECT_EQ(rig.devices[1].launched.back(), 20u);
}

// A rank that nobody waits for and that never comes back: the caller is told in its place, once the time is up and not before.
TEST(StepLoopWatch, TellsOfAStepThatStalls) {
  for (const uint32_t output_rank : {0u, 1u}) {
    comm::HostWorldOptions options;
    options.ranks = 2;
    auto world = comm::HostWorld::create(options);
    std::atomic<bool> release{false};
    std::mutex mutex;
    std::vector<std::string> errors;
    StepLoop::Options loop;
    loop.limits = limits();
    loop.ranks = 2;
    loop.in_flight = 2;
    loop.output_rank = output_rank;
    loop.stall = 200ms;
    loop.where = [](uint32_t rank) { return rank == 0 ? "in all_reduce 17 of group 'all'" : ""; };
    loop.run_step = [&](uint32_t rank, const Step &) {
      while (rank == 1 && !release)
        std::this_thread::sleep_for(1ms);
      return LogitsView{};
    };
    loop.on_done = [&](const StepBatch &, const LogitsView &, const std::string &error) {
      std::lock_guard lock(mutex);
      errors.push_back(error);
    };
    {
      StepLoop steps(std::move(loop), *world);
      steps.submit(batch(7));
      std::string refused; // a caller that waits for room is told as well
      std::thread waiting([&] {
        try {
          for (uint64_t id = 8; id < 11; ++id)
            steps.submit(batch(id));
        } catch (const Error &e) {
          refused = e.what();
        }
      });
      const auto start = std::chrono::steady_clock::now();
      while (!world->aborted() && std::chrono::steady_clock::now() - start < 20s)
        std::this_thread::sleep_for(1ms);
      EXPECT_GE(std::chrono::steady_clock::now() - start, 200ms);
      EXPECT_NE(world->reason().find("rank 1 has not finished step 7"), std::string::npos) << world->reason();
      EXPECT_NE(world->reason().find("(rank 0 was last in all_reduce 17 of group 'all')"), std::string::npos) << world->reason();
      const auto told = [&] {
        std::lock_guard lock(mutex);
        return !errors.empty() && errors.back().find("step 7") != std::string::npos;
      };
      while (!told() && std::chrono::steady_clock::now() - start < 20s)
        std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(told());
      waiting.join();
      EXPECT_NE(refused.find("step 7"), std::string::npos);
      release = true;
    }
  }
}

} // namespace
