// How a world of ranks ends: a rank that fails, one that never comes, one that is at something else. Each must end
// every other rank soon, with one sentence that names rank, operation and number.
#include <gtest/gtest.h>

#include <chrono>

#include "test/unit/comm/ranks.h"

using namespace llmrt::comm;
using namespace llmrt::comm::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

void expect_all(const std::vector<std::string> &errors, const std::vector<std::string> &parts) {
  for (size_t r = 0; r < errors.size(); ++r)
    for (const std::string &part : parts)
      EXPECT_NE(errors[r].find(part), std::string::npos) << "rank " << r << ": " << errors[r] << "\nlacks: " << part;
}

TEST(Abort, WakesEveryWaiterWithTheSameSentence) {
  HostWorldOptions options = one_group(4);
  options.channels = {{0, 3, 1, 64}};
  const auto world = HostWorld::create(options);
  const auto start = Clock::now();
  const auto errors = run_ranks(*world, 4, [&](Communicator &comm, uint32_t r) {
    float x = 0;
    if (r == 2) {
      std::this_thread::sleep_for(100ms);
      comm.abort("rank 2 ran out of luck");
    }
    if (r == 3)
      comm.recv(0, 0, {&x, 1, 4, 4});
    else
      comm.all_reduce(0, 5, &x, 1, 1, 1);
  });
  EXPECT_LT(Clock::now() - start, 5s);
  for (const std::string &error : errors)
    EXPECT_EQ(error, "rank 2 ran out of luck");
  EXPECT_TRUE(world->aborted());
  EXPECT_EQ(world->reason(), "rank 2 ran out of luck");
}

TEST(Abort, AFullChannelsSenderWakesToo) {
  HostWorldOptions options;
  options.ranks = 2;
  options.channels = {{0, 1, 1, 64}};
  const auto world = HostWorld::create(options);
  const auto errors = run_ranks(*world, 2, [&](Communicator &comm, uint32_t r) {
    float x = 0;
    if (r == 1) {
      std::this_thread::sleep_for(50ms);
      throw llmrt::Error("no more");
    }
    for (int i = 0; i < 3; ++i)
      comm.send(1, 0, {&x, 1, 4, 4});
  });
  EXPECT_EQ(errors[0], "rank 1 failed: no more");
}

TEST(Deadline, NamesTheMissingRankTheOperationAndItsNumber) {
  HostWorldOptions options = one_group(3);
  options.timeout = 200ms;
  options.trace = true;
  const auto world = HostWorld::create(options);
  const auto start = Clock::now();
  const auto errors = run_ranks(*world, 3, [&](Communicator &comm, uint32_t r) {
    float x = 0;
    comm.begin_step(41);
    comm.all_reduce(0, 6, &x, 1, 1, 1);
    if (r != 1)
      comm.all_reduce(0, 7, &x, 1, 1, 1);
    else
      while (!world->aborted())
        std::this_thread::sleep_for(5ms);
  });
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[0], errors[2]);
  expect_all({errors[0]}, {"all_reduce 7 of step 41", "group 'all'", "for rank 1", "latest operations",
                           "rank 1: all_reduce 6 step 41"});
}

TEST(Deadline, OfAReceiveNamesThePeer) {
  HostWorldOptions options;
  options.ranks = 2;
  options.channels = {{0, 1, 1, 64}};
  options.timeout = 100ms;
  const auto world = HostWorld::create(options);
  const auto errors = run_ranks(*world, 2, [&](Communicator &comm, uint32_t r) {
    float x = 0;
    if (r == 1)
      comm.recv(0, 12, {&x, 1, 4, 4});
  });
  expect_all({errors[1]}, {"rank 1 waited", "recv 12 of step 0", "rank 0 to send"});
}

TEST(Deadline, CountsFromTheLastSignOfLife) {
  HostWorldOptions options = one_group(2);
  options.timeout = 150ms;
  const auto world = HostWorld::create(options);
  const auto errors = run_ranks(*world, 2, [&](Communicator &comm, uint32_t r) {
    float x = 1;
    if (r == 1)
      for (int i = 0; i < 12; ++i) { // busy for four times the timeout, but alive
        std::this_thread::sleep_for(50ms);
        comm.beat();
      }
    comm.all_reduce(0, 0, &x, 1, 1, 1);
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
}

TEST(Disagreement, OfSequenceNumbersIsAnError) {
  const auto world = HostWorld::create(one_group(2));
  const auto errors = run_ranks(*world, 2, [&](Communicator &comm, uint32_t r) {
    float x = 0;
    comm.all_reduce(0, r == 0 ? 4 : 5, &x, 1, 1, 1);
  });
  expect_all(errors, {"disagree", "rank 0 is at all_reduce 4", "rank 1 at all_reduce 5"});
}

TEST(Disagreement, OfKindsSizesStepsAndCountsIsAnError) {
  const std::vector<std::function<void(Communicator &, uint32_t)>> bodies = {
      [](Communicator &comm, uint32_t r) {
        float x[2] = {};
        const std::vector<uint64_t> parts{4, 4};
        if (r == 0)
          comm.all_reduce(0, 4, x, 1, 2, 2);
        else
          comm.all_gather(0, 4, {x, 1, 8, 8}, {x + 1, 1, 4, 8}, parts);
      },
      [](Communicator &comm, uint32_t r) {
        std::vector<float> x(400000); // one side takes the small way, the other the large one
        comm.all_reduce(0, 4, x.data(), r == 0 ? 1 : 1000, 400, 400);
      },
      [](Communicator &comm, uint32_t r) {
        float x = 0;
        comm.begin_step(r);
        comm.all_reduce(0, 4, &x, 1, 1, 1);
      },
      [](Communicator &comm, uint32_t r) {
        float x[6] = {}, in[4] = {};
        const std::vector<uint64_t> parts = r == 0 ? std::vector<uint64_t>{8, 16} : std::vector<uint64_t>{16, 8};
        comm.all_gather(0, 4, {x, 1, 24, 24}, {in, 1, parts[r], 16}, parts);
      },
  };
  for (const auto &body : bodies) {
    const auto world = HostWorld::create(one_group(2));
    const auto errors = run_ranks(*world, 2, body);
    expect_all(errors, {"disagree", "rank 1", "compile the plan again"});
  }
}

TEST(Disagreement, BetweenSenderAndReceiverIsAnError) {
  HostWorldOptions options;
  options.ranks = 2;
  options.channels = {{0, 1, 2, 64}};
  const auto world = HostWorld::create(options);
  const auto errors = run_ranks(*world, 2, [&](Communicator &comm, uint32_t r) {
    float x[4] = {};
    if (r == 0)
      comm.send(1, 3, {x, 2, 8, 8});
    else
      comm.recv(0, 3, {x, 1, 16, 16});
  });
  expect_all({errors[1]}, {"recv 3", "1 rows of 16 bytes", "send 3", "2 rows of 8 bytes"});
}

TEST(Misuse, IsRefusedNotObeyed) {
  EXPECT_THROW(HostWorld::create({.ranks = 2, .groups = {{"g", {0, 2}}}}), llmrt::Error);
  EXPECT_THROW(HostWorld::create({.ranks = 2, .groups = {{"g", {1, 1}}}}), llmrt::Error);
  EXPECT_THROW(HostWorld::create({.ranks = 2, .groups = {{"g", {}}}}), llmrt::Error);
  EXPECT_THROW(HostWorld::create({.ranks = 2, .channels = {{0, 0, 1, 8}}}), llmrt::Error);
  EXPECT_THROW(HostWorld::create({.ranks = 2, .channels = {{0, 1, 1, 8}, {0, 1, 1, 8}}}), llmrt::Error);
  EXPECT_THROW(HostWorld::create({.ranks = 0}), llmrt::Error);

  float x[64] = {};
  const auto foreign = HostWorld::create({.ranks = 2, .groups = {{"g", {0}}}, .channels = {{0, 1, 1, 8}}});
  EXPECT_THROW(foreign->rank(1).all_reduce(0, 0, x, 1, 1, 1), Aborted);
  const auto large = HostWorld::create({.ranks = 2, .channels = {{0, 1, 1, 8}}});
  EXPECT_THROW(large->rank(0).send(1, 0, {x, 1, 16, 16}), Aborted);
  const auto backwards = HostWorld::create({.ranks = 2, .channels = {{0, 1, 1, 8}}});
  EXPECT_THROW(backwards->rank(1).send(0, 0, {x, 1, 4, 4}), Aborted);
  const auto beyond = HostWorld::create({.ranks = 2});
  EXPECT_THROW(beyond->rank(1).recv(7, 0, {x, 1, 4, 4}), Aborted);
}

TEST(EmptyOperations, MeetNobody) {
  HostWorldOptions options = one_group(2);
  options.channels = {{0, 1, 1, 8}};
  const auto world = HostWorld::create(options);
  const std::vector<uint64_t> parts{4, 4};
  world->rank(0).all_reduce(0, 0, nullptr, 0, 8, 8); // would wait for ever if it met rank 1
  world->rank(0).gather(0, 1, 1, {}, {nullptr, 0, 4, 4}, parts);
  world->rank(0).send(1, 0, {nullptr, 0, 4, 4});
  EXPECT_FALSE(world->aborted());
}

} // namespace
