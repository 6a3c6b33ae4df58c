// An engine that gets no memory, at every place where a step's results want some: its requests end, with an error, and nobody waits for
// ever.
#include "test/unit/sched/engine_fixture.h"
#include "test/unit/sched/failing_new.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

// Runs an engine whose allocation number `at` of the thread that reports `step` fails; false where there is none.
bool fails_once(const FakeOptions &fake, uint64_t step, int at) {
  SCOPED_TRACE(::testing::Message() << "allocation " << at << " of step " << step);
  allocation_failed = false;
  const EngineModel model = small_model();
  auto log = std::make_shared<FakeLog>();
  auto engine = create_engine(model, {}, [&](exec::Executor::StepDone done) {
    auto reports = [done = std::move(done), step, at](const exec::StepBatch &batch, const exec::LogitsView &logits, const std::string &error) {
      fail_allocation(batch.id == step ? at : 0);
      done(batch, logits, error);
      fail_allocation(0);
    };
    return std::make_unique<FakeExecutor>(model, fake, log, std::move(reports));
  });
  std::vector<std::shared_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) {
    auto client = std::make_shared<Client>();
    EngineRequest request;
    request.prompt = prompt_of(10 + static_cast<size_t>(i), i);
    request.sampling = sampled(static_cast<uint64_t>(i), 2 + static_cast<uint32_t>(i)); // they end one after the other
    request.on_event = [client](RequestEvent &&e) { client->on_event(std::move(e)); };
    SubmitError error = SubmitError::None;
    std::string message;
    if (engine->submit(std::move(request), error, message) != 0)
      clients.push_back(client);
    else
      EXPECT_EQ(error, SubmitError::Dead) << message;
  }
  bool told = false; // drawing a token says it to one request, everything else ends the engine
  for (const auto &client : clients) {
    const Received got = client->wait();
    told |= got.error.find("bad_alloc") != std::string::npos;
    EXPECT_TRUE(got.finish && (*got.finish == FinishReason::Length || (*got.finish == FinishReason::Error && allocation_failed)));
    EXPECT_FALSE(got.event_after_finish);
  }
  EXPECT_TRUE(engine->wait_idle(60));
  EXPECT_EQ(allocation_failed, told || engine->stats().fatal.find("bad_alloc") != std::string::npos) << engine->stats().fatal;
  return allocation_failed;
}

TEST(EngineMemory, EndsItsRequestsWhereThereIsNone) {
  FakeOptions drawn, ahead;
  drawn.samples = true;
  ahead.samples = ahead.ahead = ahead.follows = true, ahead.depth = 2;
  int places = 0;
  for (const FakeOptions &fake : {FakeOptions{}, drawn, ahead})
    for (uint64_t step = 1; step <= 4; ++step)
      for (int at = 1; fails_once(fake, step, at) && !HasFailure(); ++at)
        ++places;
  EXPECT_GT(places, 20);
}

} // namespace
