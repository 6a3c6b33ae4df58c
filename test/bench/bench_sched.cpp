// Host time of a step, in microseconds: composing it, checking it, filling what is uploaded of it, the whole way through the engine
// with an executor that does nothing, and sampling. Medians.
#include "runtime/exec/packed_step.h"
#include "runtime/exec/step.h"
#include "runtime/exec/step_observer.h"
#include "runtime/sample/sampler.h"
#include "runtime/sched/engine_model.h"
#include "runtime/sched/scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

using namespace llmrt;

namespace {

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point t) {
  return std::chrono::duration<double, std::micro>(Clock::now() - t).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

EngineModel model_of(uint32_t seqs) {
  EngineModel m;
  m.max_model_len = 4096;
  m.max_num_seqs = seqs;
  m.max_batched_tokens = 2048;
  m.max_logits_rows = seqs;
  m.page_size = 16;
  m.num_pages = seqs * 256 + 1000;
  m.vocab = 8;
  return m;
}

EngineRequest request_of(size_t prompt, uint32_t max_tokens, uint32_t seed) {
  EngineRequest r;
  std::mt19937 rng(seed);
  for (size_t i = 0; i < prompt; ++i)
    r.prompt.push_back(static_cast<int32_t>(rng() % 8));
  r.sampling.max_tokens = max_tokens;
  r.sampling.ignore_eos = true;
  r.sampling.temperature = 0;
  return r;
}

exec::StepLimits limits_of(const EngineModel &m) {
  return {m.max_model_len, m.max_num_seqs, m.max_batched_tokens, m.max_logits_rows, m.page_size, m.num_pages, m.vocab};
}

// What an executor checks of steps.
class Checks {
public:
  explicit Checks(const EngineModel &model) : limits_(limits_of(model)) {}
  void check(const exec::StepBatch &batch) {
    if (batch.follows) {
      last_.validate(limits_, batch);
      last_.advance(batch);
    } else {
      exec::validate(limits_, batch);
      last_.set(batch);
    }
  }

private:
  exec::StepLimits limits_;
  exec::FollowedStep last_;
};

struct Composed {
  double compose = 0, check = 0, inputs = 0;
};

// A decode step of `seqs` sequences at a context of about 1000, with `waiting` more in the queue, composed a step ahead: as one that
// follows, or whole. And what else the host does with it: the executor's checks, and filling what is uploaded.
Composed compose_us(uint32_t seqs, uint32_t waiting, bool follows) {
  const EngineModel model = model_of(seqs);
  sched::Scheduler scheduler(model, true, 1);
  scheduler.draw_on_device();
  scheduler.run_ahead();
  if (follows)
    scheduler.follow();
  exec::StepBatch batch;
  std::vector<sched::StepWork> work, before;
  std::vector<std::byte> upload(exec::packed_bytes(limits_of(model)));
  Checks executor(model);
  uint64_t id = 0;
  for (uint32_t i = 0; i < seqs + waiting; ++i)
    scheduler.enqueue(
        std::make_shared<sched::Request>(++id, request_of(1000, 3000, i), 1, std::vector<int32_t>{}));
  std::vector<double> composes, checks, inputs;
  for (int step = 0; step < 600; ++step) {
    ++batch.id;
    const auto start = Clock::now();
    scheduler.compose(batch, work);
    const double composed = us_since(start);
    const auto composed_at = Clock::now();
    executor.check(batch);
    const double checked = us_since(composed_at);
    const auto checked_at = Clock::now();
    if (!batch.follows)
      exec::pack(batch, false, upload.data());
    const double packed = us_since(checked_at);
    if (batch.follows || batch.ids.size() == seqs)
      composes.push_back(composed), checks.push_back(checked), inputs.push_back(packed);
    for (auto &w : before) {
      scheduler.returned(w);
      if (w.samples)
        w.request->tokens.push_back(1);
    }
    if (!batch.follows)
      before.swap(work);
  }
  return {median(composes), median(checks), median(inputs)};
}

// Walks through memory until then, which takes everything else out of the caches.
void walk(Clock::time_point end) {
  static std::vector<char> memory(size_t{96} << 20, 1);
  static size_t at = 0;
  static std::atomic<int> sum;
  for (int seen = 0; Clock::now() < end; sum += seen)
    for (int i = 0; i < 64; ++i, at = (at + 64) % memory.size())
      seen += memory[at];
}

struct Pause {
  std::chrono::microseconds time{0};
  bool cold = false; // what the engine uses leaves the caches meanwhile
};

enum class Kind { OneByOne, Ahead, Following }; // steps: drawn by the host; a step ahead and whole; and following each other

// Returns the same logits for every row at once, or the same token for each row that it is to draw. With a `pause` it spins for
// that long before each step's results, as a rank's thread does while a device is busy.
class NullExecutor final : public exec::Executor {
public:
  NullExecutor(const EngineModel &model, Kind kind, Pause pause, StepDone done)
      : done_(std::move(done)), vocab_(model.vocab), kind_(kind), pause_(pause), checks_(model), tokens_(model.max_logits_rows, 3) {
    logits_.resize(model.vocab * model.max_logits_rows);
    for (size_t i = 0; i < logits_.size(); ++i)
      logits_[i] = static_cast<float>(i % model.vocab);
    thread_ = std::thread([this] { run(); });
  }
  ~NullExecutor() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  void submit(std::shared_ptr<const exec::StepBatch> batch) override {
    checks_.check(*batch);
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(batch));
    changed_.notify_all();
  }
  bool accepts() const override { return true; }
  unsigned max_in_flight() const override { return samples() ? 2 : 1; }
  bool samples() const override { return kind_ != Kind::OneByOne; }
  bool runs_ahead() const override { return samples(); }
  bool follows() const override { return kind_ == Kind::Following; }
  std::string backend() const override { return "null"; }
  uint32_t num_pages() const override { return UINT32_MAX; }
  std::vector<exec::RankMemory> memory() const override { return {}; }

private:
  void run() {
    for (;;) {
      std::shared_ptr<const exec::StepBatch> batch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty())
          return;
        batch = std::move(queue_.front());
        queue_.pop_front();
      }
      for (const auto end = Clock::now() + pause_.time; Clock::now() < end;)
        if (pause_.cold)
          walk(end);
      done_(*batch, {logits_.data(), tokens_.size(), vocab_, tokens_.data()}, "");
    }
  }
  StepDone done_;
  size_t vocab_;
  Kind kind_;
  Pause pause_;
  Checks checks_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const exec::StepBatch>> queue_;
  bool stop_ = false;
  std::thread thread_;
};

// A whole step through the engine: both thread hand-overs, composing, sampling over 8 tokens (or none), events.
double engine_us(uint32_t seqs, uint32_t tokens, Kind kind) {
  const EngineModel model = model_of(seqs);
  auto engine = create_engine(model, {}, [&](exec::Executor::StepDone done) {
    return std::make_unique<NullExecutor>(model, kind, Pause{}, std::move(done));
  });
  const auto start = Clock::now();
  for (uint32_t i = 0; i < seqs; ++i) {
    EngineRequest r = request_of(16, tokens, i);
    r.on_event = [](RequestEvent &&) {};
    SubmitError error;
    std::string message;
    engine->submit(std::move(r), error, message);
  }
  engine->wait_idle(60);
  return us_since(start) / static_cast<double>(engine->stats().steps);
}

class HostTimes final : public exec::StepObserver {
public:
  void begin(uint64_t, uint32_t, uint32_t) override {}
  void end(uint64_t, uint32_t, uint32_t) override {}
  void engine_worked(uint64_t, exec::EngineWork work, double seconds) override {
    (work == exec::EngineWork::Compose ? compose : work == exec::EngineWork::Results ? results : deliver).push_back(seconds * 1e6);
  }
  std::vector<double> compose, results, deliver; // each filled by one thread at a time
};

// What the engine does for a step, a step ahead, where milliseconds lie between steps.
HostTimes engine_pausing_us(uint32_t seqs, Kind kind, bool cold) {
  HostTimes times;
  const EngineModel model = model_of(seqs);
  auto engine = create_engine(model, {}, [&](exec::Executor::StepDone done) {
    return std::make_unique<NullExecutor>(model, kind, Pause{std::chrono::microseconds(5000), cold}, std::move(done));
  });
  engine->observe(&times);
  for (uint32_t i = 0; i < seqs; ++i) {
    EngineRequest r = request_of(256, 200, i);
    r.on_event = [](RequestEvent &&) {};
    SubmitError error;
    std::string message;
    engine->submit(std::move(r), error, message);
  }
  engine->wait_idle(60);
  engine.reset();
  return times;
}

double sample_us(size_t vocab, float scale, SamplingParams params, bool logprobs = false) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, scale);
  std::vector<std::vector<float>> rows(8, std::vector<float>(vocab));
  for (auto &row : rows)
    for (float &x : row)
      x = normal(rng);
  sample::Scratch scratch;
  std::vector<double> times;
  for (uint64_t i = 0; i < 64; ++i) {
    sample::Sampler sampler(params, i, {}, {});
    const auto start = Clock::now();
    const int32_t token = sampler.sample(rows[i % rows.size()], scratch);
    if (logprobs)
      sample::token_logprobs(rows[i % rows.size()], token, 5, scratch);
    times.push_back(us_since(start));
  }
  return median(times);
}

} // namespace

int main() {
  std::printf("a decode step, context 1000           compose   check  inputs  us  (goal of all that the host does: <= 50 at 256)\n");
  for (auto [seqs, waiting] : std::vector<std::pair<uint32_t, uint32_t>>{{8, 0}, {64, 0}, {64, 600}, {256, 0}})
    for (const bool follows : {false, true}) {
      const Composed us = compose_us(seqs, waiting, follows);
      std::printf("  %3u sequences, %3u waiting, %s %7.1f %7.1f %7.1f\n", seqs, waiting, follows ? "following" : "whole    ", us.compose,
                  us.check, us.inputs);
    }
  std::printf("a step through the engine, no model        us   ahead  following\n");
  for (uint32_t seqs : {8u, 64u, 256u})
    std::printf("  %3u sequences                       %7.1f %7.1f %7.1f\n", seqs, engine_us(seqs, 2000, Kind::OneByOne),
                engine_us(seqs, 2000, Kind::Ahead), engine_us(seqs, 2000, Kind::Following));
  std::printf("a step ahead, 5 ms between steps      compose results  us, and callbacks on their own thread\n");
  for (bool cold : {false, true})
    for (uint32_t seqs : {8u, 64u, 256u})
      for (Kind kind : {Kind::Ahead, Kind::Following}) {
        const HostTimes times = engine_pausing_us(seqs, kind, cold);
        std::printf("  %3u sequences, %s, %s    %7.1f %7.1f %7.1f\n", seqs, cold ? "caches cold" : "warm       ",
                    kind == Kind::Ahead ? "whole    " : "following", median(times.compose), median(times.results), median(times.deliver));
      }
  std::printf("sample one row                       49152  151936 logits, us\n");
  auto line = [](const char *name, float scale, SamplingParams p, bool logprobs = false) {
    std::printf("  %-33s %7.1f %7.1f\n", name, sample_us(49152, scale, p, logprobs),
                sample_us(151936, scale, p, logprobs));
  };
  SamplingParams greedy, plain, top_k, top_p, min_p, both;
  greedy.temperature = 0;
  top_k.top_k = 50;
  top_p.top_p = 0.9f;
  min_p.min_p = 0.05f;
  both.top_k = 40;
  both.top_p = 0.95f;
  line("greedy", 3, greedy);
  line("greedy, 5 logprobs", 3, greedy, true);
  line("temperature", 3, plain);
  line("top_k 50", 3, top_k);
  line("top_k 40, top_p 0.95", 3, both);
  line("top_p 0.9", 3, top_p);
  line("top_p 0.9, flat", 0.1f, top_p);
  line("top_p 0.9, peaked", 8, top_p);
  line("min_p 0.05", 3, min_p);
}
