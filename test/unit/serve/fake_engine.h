// An engine that needs no model: it answers every prompt with the bytes of a script, one token a step, and keeps
// count of what happens to requests. Token ids below 256 are bytes; see fixture.h for the tokenizer.
#pragma once

#include "runtime/sched/engine.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace llmrt::test {

constexpr int32_t kEos = 256;

class FakeEngine : public Engine {
public:
  FakeEngine();
  ~FakeEngine() override;

  // To be set before requests come.
  std::string script = "Hello, world! 👋 And more text follows here.";
  std::chrono::microseconds step{0};
  std::string fail_with;    ///< after three tokens
  std::function<void()> on_submitted; ///< called before submit() returns
  std::atomic<uint32_t> max_active{1 << 20}; ///< more are refused as QueueFull
  std::atomic<double> stalled{0};

  // What was seen.
  std::atomic<int> submitted{0}, cancelled{0}, finished{0};
  SamplingParams last_sampling() const;
  std::vector<int32_t> last_prompt() const;
  void die(const std::string &why);

  uint64_t submit(EngineRequest request, SubmitError &error, std::string &message) override;
  void cancel(uint64_t id) override;
  EngineStats stats() const override;
  std::vector<exec::RankMemory> memory() const override { return {}; }
  void drain() override;
  bool wait_idle(double seconds) override;

private:
  struct Active {
    uint64_t id;
    EngineRequest request;
    size_t done = 0;
    std::atomic<bool> cancelled = false;
    Active(uint64_t i, EngineRequest r) : id(i), request(std::move(r)) {}
  };
  void loop();
  bool advance(Active &active); ///< false when it has ended

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Active> active_;
  uint64_t next_id_ = 1;
  bool draining_ = false, stopping_ = false;
  std::string fatal_;
  SamplingParams sampling_;
  std::vector<int32_t> prompt_;
  std::thread thread_;
};

} // namespace llmrt::test
