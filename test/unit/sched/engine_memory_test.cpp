// An engine that gets no memory, at every place where a step's results want some: its requests end, with an error, and nobody waits for
// ever. This program's operator new fails once, where a thread has asked for that.
#include "test/unit/sched/engine_fixture.h"

#include <cstdlib>
#include <new>

namespace {

thread_local int fails_at = 0; // counts allocations of the thread down; 0: none fails
std::atomic<bool> failed = false;

void *allocate(size_t bytes, size_t alignment) {
  if (fails_at > 0 && --fails_at == 0) {
    failed = true;
    throw std::bad_alloc();
  }
  void *found = alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                                                             : std::malloc(bytes ? bytes : 1);
  if (!found)
    throw std::bad_alloc();
  return found;
}

} // namespace

void *operator new(size_t bytes) { return allocate(bytes, 0); }
void *operator new[](size_t bytes) { return allocate(bytes, 0); }
void *operator new(size_t bytes, std::align_val_t alignment) { return allocate(bytes, static_cast<size_t>(alignment)); }
void *operator new[](size_t bytes, std::align_val_t alignment) { return allocate(bytes, static_cast<size_t>(alignment)); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete[](void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }
void operator delete[](void *p, size_t) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void *p, size_t, std::align_val_t) noexcept { std::free(p); }

using namespace llmrt;
using namespace llmrt::test;

namespace {

// Runs an engine whose allocation number `at` of the thread that reports `step` fails; false where there is none.
bool fails_once(const FakeOptions &fake, uint64_t step, int at) {
  SCOPED_TRACE(::testing::Message() << "allocation " << at << " of step " << step);
  failed = false;
  const EngineModel model = small_model();
  auto log = std::make_shared<FakeLog>();
  auto engine = create_engine(model, {}, [&](exec::Executor::StepDone done) {
    auto reports = [done = std::move(done), step, at](const exec::StepBatch &batch, const exec::LogitsView &logits, const std::string &error) {
      fails_at = batch.id == step ? at : 0;
      done(batch, logits, error);
      fails_at = 0;
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
    EXPECT_TRUE(got.finish && (*got.finish == FinishReason::Length || (*got.finish == FinishReason::Error && failed)));
    EXPECT_FALSE(got.event_after_finish);
  }
  EXPECT_TRUE(engine->wait_idle(60));
  EXPECT_EQ(failed, told || engine->stats().fatal.find("bad_alloc") != std::string::npos) << engine->stats().fatal;
  return failed;
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
