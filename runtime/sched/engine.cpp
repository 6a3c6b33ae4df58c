// The engine's threads around the scheduler's policy:
//   - submit() and cancel() come from anywhere and only queue;
//   - the executor's output thread calls back with logits; tokens are chosen there, the requests return, and the next step is
//     composed at once, by the core that has all of it in its caches, where the executor takes it without waiting;
//   - the scheduling thread composes the others whenever the executor has room: those that start the work, above all;
//   - the delivery thread calls on_event, so that no user's callback ever delays a step or runs under a lock.
// Locks: step_mutex_ (a step's results are being applied) before mutex_ (everything else). Neither is held
// while the executor's submit() or a callback runs.
#include "runtime/exec/kernel_tracer.h"
#include "runtime/exec/step_observer.h"
#include "runtime/sched/admission.h"
#include "runtime/sched/batch_pool.h"
#include "runtime/sched/counts.h"
#include "runtime/sched/delivery.h"
#include "runtime/sched/engine_model.h"
#include "runtime/sched/scheduler.h"
#include "runtime/sched/step_output.h"
#include "runtime/support/error.h"
#include "runtime/support/seconds.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>

namespace llmrt {
namespace {

using Clock = std::chrono::steady_clock;
using sched::Request;
using sched::RequestPtr;
using sched::StepWork;
using StepWorks = std::vector<StepWork>;

// How long the destructor waits for the steps in flight before it lets the executor go.
constexpr auto kShutdownWait = std::chrono::seconds(30);

// So many requests ahead of the one whose result is taken are asked for, and so many their tokens.
constexpr size_t kFetchAhead = 12, kFetchListsAhead = 6;

struct InFlight {
  uint64_t id = 0; // of the step
  Clock::time_point started;
  uint32_t tokens = 0;
  bool host_reads = false; // some of its logits
  size_t returned = 0;     // parts of its work, to the scheduler
  std::shared_ptr<StepWorks> work; // also of the step before, where it follows that
};

class EngineImpl final : public Engine {
public:
  EngineImpl(const EngineModel &model, const EngineOptions &options, const ExecutorFactory &make_executor)
      : model_(model), max_queued_(options.max_queued_requests) {
    sched::check_model(model_);
    std::random_device random;
    seed_base_ = (static_cast<uint64_t>(random()) << 32) | random();
    executor_ = make_executor([this](const exec::StepBatch &batch, const exec::LogitsView &logits,
                                     const std::string &error) { step_done(batch, logits, error); });
    const bool can_run_ahead = executor_->samples() && executor_->runs_ahead();
    max_in_flight_ = std::max(1u, executor_->max_in_flight());
    if (can_run_ahead)
      max_in_flight_ = options.run_ahead ? 2 : 1;
    model_.num_pages = std::min(model_.num_pages, executor_->num_pages());
    model_.max_batched_tokens = std::min(model_.max_batched_tokens, executor_->step_tokens());
    scheduler_ = std::make_unique<sched::Scheduler>(model_, options.prefix_cache, can_run_ahead ? 1 : max_in_flight_);
    if (executor_->samples())
      scheduler_->draw_on_device();
    if (can_run_ahead && options.run_ahead) {
      scheduler_->run_ahead();
      if (executor_->follows())
        scheduler_->follow();
    }
    schedule_thread_ = std::thread([this] { schedule(); });
  }

  ~EngineImpl() override {
    {
      std::unique_lock lock(mutex_);
      stopping_ = draining_ = true;
      for (auto &[id, request] : requests_)
        request->cancelled.store(true, std::memory_order_relaxed);
      cancel_idle_requests();
      deliver_now();
      wake_scheduler_.notify_all();
      idle_.wait_for(lock, kShutdownWait, [this] { return in_flight_.empty(); });
    }
    schedule_thread_.join();
    executor_.reset();
    die("the engine was shut down while a step was in flight"); // ends what a stuck executor never returned
  }

  uint64_t submit(EngineRequest given, SubmitError &error, std::string &message) override {
    error = SubmitError::Invalid;
    message = sched::why_never(model_, given);
    if (!message.empty())
      return 0;
    const uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
    std::vector<int32_t> ends = given.sampling.stop_token_ids;
    if (!given.sampling.ignore_eos)
      ends.insert(ends.end(), model_.eos_token_ids.begin(), model_.eos_token_ids.end());
    // Without a seed each request gets one of its own, and another at every start of the program.
    const uint64_t seed =
        given.sampling.seed ? *given.sampling.seed : seed_base_ + id * 0x9E3779B97F4A7C15ull;
    auto request = std::make_shared<Request>(id, std::move(given), seed, ends);
    request->arrived = Clock::now();

    std::lock_guard lock(mutex_);
    if (!fatal_.empty()) {
      error = SubmitError::Dead;
      message = "the engine has stopped: " + fatal_;
      return 0;
    }
    if (draining_) {
      error = SubmitError::Draining;
      message = "the server is shutting down and takes no new requests";
      return 0;
    }
    const size_t waiting = scheduler_->waiting().size(), running = scheduler_->running().size();
    const size_t free_seats =
        scheduler_->blocked_on_pages() || running >= model_.max_num_seqs ? 0 : model_.max_num_seqs - running;
    if (waiting >= max_queued_ + free_seats) {
      error = SubmitError::QueueFull;
      message = "the queue is full: " + std::to_string(waiting) + " requests wait and " +
                std::to_string(running) +
                " run; try again later, or start with a larger --max-queued-requests";
      return 0;
    }
    if (requests_.empty())
      last_progress_ = Clock::now();
    requests_.emplace(id, request);
    scheduler_->enqueue(std::move(request));
    changed();
    error = SubmitError::None;
    return id;
  }

  void cancel(uint64_t id) override {
    std::lock_guard lock(mutex_);
    auto it = requests_.find(id);
    if (it == requests_.end())
      return;
    Request &request = *it->second;
    request.cancelled.store(true, std::memory_order_relaxed);
    if (request.in_flight)
      return; // its step ends it
    RequestEvent event;
    event.finish = FinishReason::Cancelled;
    event.cached_tokens = request.cached;
    finish(request, std::move(event));
    deliver_now();
    changed();
  }

  EngineStats stats() const override {
    std::lock_guard lock(mutex_);
    EngineStats s;
    s.running = static_cast<uint32_t>(scheduler_->running().size());
    s.waiting = static_cast<uint32_t>(scheduler_->waiting().size());
    s.pages_total = scheduler_->pool().total();
    s.pages_used = scheduler_->pool().used();
    s.prompt_tokens = counts_.prompt_tokens();
    s.generation_tokens = counts_.generation_tokens();
    s.steps = counts_.steps();
    s.prefix_queries = scheduler_->prefix_queries();
    s.prefix_hits = scheduler_->prefix_hits();
    s.preemptions = scheduler_->preemptions();
    if (!requests_.empty() || !in_flight_.empty())
      s.seconds_since_progress = seconds_since(last_progress_);
    s.fatal = fatal_;
    return s;
  }

  EngineMetrics metrics() const override {
    std::lock_guard lock(mutex_);
    return counts_.metrics();
  }

  std::string backend() const override { return executor_->backend(); }
  std::vector<int> placement() const override { return executor_->placement(); }
  void observe(exec::StepObserver *observer) override {
    std::lock_guard lock(mutex_);
    observer_ = observer;
  }
  std::unique_ptr<exec::KernelTracer> trace_kernels() override { return executor_->trace_kernels(); }
  exec::Ceilings measure_ceilings() override { return executor_->measure_ceilings(); }
  std::vector<exec::RankMemory> memory() const override { return executor_->memory(); }
  exec::StartTimes start_times() const override { return executor_->start_times(); }

  void drain() override {
    std::lock_guard lock(mutex_);
    draining_ = true;
  }

  bool wait_idle(double seconds) override {
    std::unique_lock lock(mutex_);
    auto is_idle = [this] { return requests_.empty() && in_flight_.empty() && delivery_.idle(); };
    // Longer than a year is for ever; the clock's own arithmetic would overflow.
    if (!(seconds < 3e7)) {
      idle_.wait(lock, is_idle);
      return true;
    }
    return idle_.wait_for(lock, std::chrono::duration<double>(std::max(0.0, seconds)), is_idle);
  }

private:
  // --- delivery thread

  void requests_ended() {
    { std::lock_guard lock(mutex_); } // who waits either sees that the delivery is idle, or sleeps already
    idle_.notify_all();
  }

  // --- composing, on whatever thread

  void schedule() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_scheduler_.wait(lock, [this] { return stopping_ || may_compose(); });
      if (stopping_)
        return;
      try {
        compose(lock);
      } catch (const std::exception &e) { // of memory, say
        if (lock.owns_lock())
          lock.unlock();
        die(std::string("the scheduler failed: ") + e.what());
        lock.lock();
      }
    }
  }

  // Something came or went that may make a step possible.
  void changed() {
    changed_ = true;
    if (may_compose())
      wake_scheduler_.notify_one();
  }

  bool may_compose() const {
    return changed_ && !submitting_ && !stopping_ && fatal_.empty() && in_flight_.size() < max_in_flight_;
  }

  // Where may_compose(): composes a step, if there is one, and hands it over, for which `lock` is let go.
  void compose(std::unique_lock<std::mutex> &lock) {
    exec::StepObserver *const observer = observer_;
    const Clock::time_point began = observer ? Clock::now() : Clock::time_point();
    if (!batch_)
      batch_ = batches_->take();
    batch_->id = next_step_;
    batch_->observer = observer;
    bool ready = false;
    std::string why;
    try {
      ready = scheduler_->compose(*batch_, *work_);
    } catch (const std::exception &e) {
      why = e.what();
    }
    if (!ready) {
      changed_ = false; // until a step returns or a request comes or goes
      if (why.empty() && in_flight_.empty() && !(scheduler_->running().empty() && scheduler_->waiting().empty()))
        why = std::to_string(scheduler_->running().size()) + " requests run and " +
              std::to_string(scheduler_->waiting().size()) + " wait, and none can be scheduled; this is a bug in llmrt";
      if (!why.empty()) {
        lock.unlock();
        die("the scheduler failed: " + why);
        lock.lock();
      }
      if (observer)
        composed_in_vain_ += seconds_between(began, Clock::now());
      return;
    }
    const uint64_t id = next_step_++;
    list_in_flight();
    std::shared_ptr<exec::StepBatch> batch = std::move(batch_);
    const double before = std::exchange(composed_in_vain_, 0);
    submitting_ = true; // steps reach the executor in order
    lock.unlock();
    try {
      executor_->submit(std::move(batch));
    } catch (const std::exception &e) {
      die(e.what());
    }
    if (observer)
      observer->engine_worked(id, exec::EngineWork::Compose, before + seconds_between(began, Clock::now()));
    lock.lock();
    submitting_ = false;
  }

  // The step composed.
  void list_in_flight() {
    InFlight step;
    step.id = batch_->id;
    step.started = Clock::now();
    if (batch_->follows) {
      step.work = in_flight_.back().work;
      step.tokens = static_cast<uint32_t>(step.work->size());
      in_flight_.push_back(std::move(step));
      return;
    }
    step.tokens = static_cast<uint32_t>(batch_->ids.size());
    step.host_reads = scheduler_->host_reads();
    step.work = std::exchange(work_, nullptr);
    if (!spare_work_.empty()) {
      work_ = std::move(spare_work_.back());
      spare_work_.pop_back();
    } else {
      work_ = std::make_shared<StepWorks>();
    }
    in_flight_.push_back(step);
    for (const StepWork &part : *step.work)
      counts_.starts(*part.request, step.started);
  }

  // --- executor's output thread

  void step_done(const exec::StepBatch &batch, const exec::LogitsView &logits, const std::string &error) {
    try {
      if (error.empty())
        results_came(batch, logits);
      else
        die(error);
    } catch (const std::exception &e) { // of memory, say; no lock is held any more
      die(std::string("the results of a step could not be taken: ") + e.what());
    }
  }

  void results_came(const exec::StepBatch &batch, const exec::LogitsView &logits) {
    exec::StepObserver *const observer = batch.observer;
    const uint64_t id = batch.id;
    const auto now = [&] { return observer ? Clock::now() : Clock::time_point(); };
    const Clock::time_point came = now();
    std::vector<RequestPtr> gone; // let go when no lock is held
    std::unique_lock step_lock(step_mutex_);
    std::unique_lock lock(mutex_);
    if (in_flight_.empty())
      return; // the engine died meanwhile
    if (const uint64_t expected = in_flight_.front().id; expected != id) {
      lock.unlock();
      step_lock.unlock();
      die("the executor finished step " + std::to_string(id) + " before step " + std::to_string(expected));
      return;
    }
    take_results(logits, lock);
    delivery_.publish(observer, id);
    step_lock.unlock();
    const Clock::time_point applied = now();
    if (may_compose() && executor_->accepts())
      compose(lock);
    const Clock::time_point composed = now();
    gone.swap(gone_);
    const bool more = may_compose();
    lock.unlock();
    // Only now, or those who wake would wait for the lock at once.
    if (more)
      wake_scheduler_.notify_one();
    delivery_.wake();
    if (observer)
      observer->engine_worked(id, exec::EngineWork::Results, seconds_between(came, applied) + seconds_between(composed, Clock::now()));
  }

  // Of the oldest step in flight. It stays listed until they are applied, so that the engine does not look idle. `lock` is not
  // held while tokens are chosen.
  void take_results(const exec::LogitsView &logits, std::unique_lock<std::mutex> &lock) {
    const std::shared_ptr<StepWorks> shared = in_flight_.front().work;
    const StepWorks &work = *shared;
    if (in_flight_.front().host_reads) {
      lock.unlock();
      outputs_.clear();
      for (const StepWork &part : work)
        if (part.read_by_host())
          outputs_.push_back(read_logits(part, logits, scratch_));
      lock.lock();
    }
    const Clock::time_point now = Clock::now();
    auto output = outputs_.begin();
    for (size_t i = 0; i < work.size(); ++i) {
      if (i + kFetchAhead < work.size())
        work[i + kFetchAhead].request->prefetch_results();
      if (i + kFetchListsAhead < work.size())
        work[i + kFetchListsAhead].request->prefetch_tokens();
      const StepWork &part = work[i];
      Request &request = *part.request;
      scheduler_->returned(part);
      ++in_flight_.front().returned;
      if (request.over) {
        if (!request.in_flight)
          gone_.push_back(scheduler_->remove(request));
      } else if (int32_t token = 0; take_drawn(part, logits, token)) {
        if (part.completes)
          counts_.prompt(request);
        counts_.drawn();
        counts_.token(request, now);
        delivery_.add(request, token);
      } else {
        apply(part, part.read_by_host() ? std::move(*output) : read_logits(part, logits, scratch_), now);
      }
      output += part.read_by_host();
    }
    counts_.step(in_flight_.front().started, in_flight_.front().tokens, now);
    const bool followed = in_flight_.size() > 1 && in_flight_[1].work == shared;
    in_flight_.erase(in_flight_.begin());
    if (!followed)
      spare_work_.push_back(shared);
    last_progress_ = now;
    changed_ = true;
    if (in_flight_.empty())
      idle_.notify_all();
  }

  void apply(const StepWork &work, sched::StepOutput &&output, Clock::time_point now) {
    Request &request = *work.request;
    if (work.completes)
      counts_.prompt(request);
    if (output.token)
      counts_.drawn();
    if (auto event = take_output(work, std::move(output))) {
      if (!event->tokens.empty())
        counts_.token(request, now);
      if (event->finish)
        finish(request, std::move(*event));
      else
        delivery_.add(request, std::move(*event));
    }
  }

  // --- under mutex_

  // The request is over. A step in flight that carries it frees its pages.
  void finish(Request &request, RequestEvent &&event) {
    const auto listed = requests_.find(request.id);
    delivery_.add_last(listed->second, std::move(event)); // first: it may lack memory, and then nothing has happened
    request.over = true;
    counts_.ends(request, Clock::now());
    if (!request.in_flight)
      scheduler_->remove(request); // not the last share
    requests_.erase(listed);
  }

  void deliver_now() {
    delivery_.publish();
    delivery_.wake();
  }

  void cancel_idle_requests() {
    std::vector<Request *> idle;
    for (auto &[id, request] : requests_)
      if (!request->in_flight)
        idle.push_back(request.get());
    for (Request *request : idle) {
      RequestEvent event;
      event.finish = FinishReason::Cancelled;
      finish(*request, std::move(event));
    }
  }

  // Ends every request with this error and refuses all later ones. Waits until no step's results are being
  // applied.
  void die(const std::string &why) {
    std::vector<RequestPtr> gone; // let go when no lock is held
    std::lock_guard step_lock(step_mutex_);
    std::lock_guard lock(mutex_);
    if (fatal_.empty() && !stopping_)
      fatal_ = why;
    std::vector<InFlight> dropped;
    dropped.swap(in_flight_);
    for (InFlight &step : dropped)
      for (; step.returned < step.work->size(); ++step.returned) {
        const StepWork &work = (*step.work)[step.returned];
        scheduler_->returned(work);
        if (work.request->over && !work.request->in_flight)
          gone.push_back(scheduler_->remove(*work.request));
      }
    std::vector<Request *> all;
    for (auto &[id, request] : requests_)
      all.push_back(request.get());
    std::sort(all.begin(), all.end(), [](const Request *a, const Request *b) { return a->id < b->id; });
    for (Request *request : all) {
      RequestEvent event;
      event.finish =
          request->cancelled.load(std::memory_order_relaxed) ? FinishReason::Cancelled : FinishReason::Error;
      if (event.finish == FinishReason::Error)
        event.error = why;
      finish(*request, std::move(event));
    }
    deliver_now();
    idle_.notify_all();
  }

  EngineModel model_; // does not change once the executor stands
  const size_t max_queued_;
  uint64_t seed_base_ = 0;
  unsigned max_in_flight_ = 1;
  std::atomic<uint64_t> next_id_ = 1;

  std::mutex step_mutex_;
  sample::Scratch scratch_;                // step_mutex_
  std::vector<sched::StepOutput> outputs_; // step_mutex_: of rows that the host reads, in order

  mutable std::mutex mutex_; // all that follows
  std::condition_variable wake_scheduler_, idle_;
  std::unique_ptr<sched::Scheduler> scheduler_;
  std::unordered_map<uint64_t, RequestPtr> requests_;
  std::vector<InFlight> in_flight_; // oldest first
  std::vector<std::shared_ptr<StepWorks>> spare_work_;
  std::vector<RequestPtr> gone_; // by a step's results
  std::shared_ptr<exec::StepBatch> batch_; // being composed
  std::shared_ptr<StepWorks> work_ = std::make_shared<StepWorks>(); // of that step, where it does not follow another
  uint64_t next_step_ = 1;
  sched::Counts counts_;
  double composed_in_vain_ = 0; // for the next step, in seconds; counted where somebody looks
  Clock::time_point last_progress_ = Clock::now();
  std::string fatal_;
  exec::StepObserver *observer_ = nullptr;
  bool changed_ = false, draining_ = false, stopping_ = false;
  bool submitting_ = false; // a step is on its way to the executor

  std::shared_ptr<sched::BatchPool> batches_ = std::make_shared<sched::BatchPool>();
  sched::Delivery delivery_{{.failed = [this](uint64_t id) { cancel(id); },
                             .ended = [this] { requests_ended(); }}};
  std::unique_ptr<exec::Executor> executor_;
  std::thread schedule_thread_;
};

} // namespace

std::unique_ptr<exec::KernelTracer> Engine::trace_kernels() { return nullptr; }

std::unique_ptr<Engine> create_engine(const EngineModel &model, const EngineOptions &options,
                                      const ExecutorFactory &make_executor) {
  return std::make_unique<EngineImpl>(model, options, make_executor);
}

} // namespace llmrt
