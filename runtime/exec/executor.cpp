// The executor: a thread per rank that runs every step in the order submitted. A step's state sits in one of as many
// slots as steps can be in flight; all ranks follow the same counter of submitted steps, each at its own pace, and
// the last one through frees the slot.
#include "runtime/exec/executor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "runtime/exec/rank.h"
#include "runtime/exec/weight_loader.h"
#include "runtime/plan/access.h"
#include "runtime/plan/verify.h"
#include "runtime/support/affinity.h"
#include "runtime/support/error.h"
#include "runtime/support/memory_limit.h"
#include "runtime/support/wait_word.h"

namespace llmrt::exec {

namespace {

using namespace std::chrono_literals;

// Refuses what this backend cannot run at all, before anything is allocated.
void check_plan(const plan::LoadedPlan &plan) {
  if (const std::vector<plan::Problem> problems = plan::verify(plan.root()); !problems.empty())
    throw Error("the plan '" + plan.path() + "' does not hold: " + plan::to_string(problems));
  uint64_t touched = 0; // all but the KV pages, which are committed as they are used
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank) {
    const plan::Program &program = plan.program(rank);
    const plan::Device &device = *plan.root().topology()->devices()->Get(program.device());
    if (device.kind() != plan::DeviceKind::Cpu)
      throw Error("rank " + std::to_string(rank) + " of the plan belongs on the " + plan::name_of(device.kind()) +
                  " device " + plan::quoted(device.id()) + ", but this llmrt executes on CPUs: compile the plan with "
                  "a topology of cpu devices");
    touched += program.weight_bytes() + program.arena_bytes();
  }
  if (const uint64_t limit = memory_limit_bytes(); touched > limit)
    throw Error("the plan's " + std::to_string(plan.num_ranks()) + " ranks need " + std::to_string(touched) +
                " bytes for weights and activations, and this machine gives the process " + std::to_string(limit) +
                ": use a smaller --dtype, model or --max-batched-tokens, or a machine with more memory");
}

class HostExecutor final : public Executor {
public:
  HostExecutor(std::shared_ptr<const plan::LoadedPlan> plan, const ExecutorOptions &options, StepDone on_done)
      : plan_(std::move(plan)), limits_(StepLimits::of(plan_->root())), output_rank_(plan_->root().output_rank()),
        on_done_(std::move(on_done)), slots_(std::max(1u, plan_->root().pp())) {
    const unsigned cores = static_cast<unsigned>(allowed_cores().size());
    const unsigned threads = options.threads ? options.threads : cores;
    const uint32_t count = plan_->num_ranks();
    unsigned running = 0;
    for (uint32_t rank = 0; rank < count; ++rank) {
      const unsigned share = std::max(1u, threads / count + (rank < threads % count ? 1 : 0));
      ranks_.push_back(std::make_unique<Rank>(plan_, rank, static_cast<int>(share)));
      running += share;
    }
    const bool spare = running <= cores;
    idle_spin_ = spare ? 50us : 1us;

    comm::HostWorldOptions world = world_of(*plan_);
    world.timeout = std::chrono::nanoseconds(
        static_cast<int64_t>(std::clamp(options.collective_timeout_s, 1e-3, 86400.0) * 1e9));
    world.cores_to_spare = spare;
    world.trace = options.trace_collectives;
    world_ = comm::HostWorld::create(world);

    WeightLoad load;
    load.folder = options.plan_folder;
    load.threads = threads;
    if (options.on_progress)
      load.on_progress = [&](uint64_t done, uint64_t total) { options.on_progress({done, total}); };
    std::vector<std::byte *> regions;
    for (const auto &rank : ranks_)
      regions.push_back(rank->weights());
    load_weights(*plan_, regions, load);

    for (uint32_t rank = 0; rank < count; ++rank)
      ranks_[rank]->ready(world_->rank(rank));
    try {
      for (uint32_t rank = 0; rank < count; ++rank)
        threads_.emplace_back([this, rank] { serve(rank); });
    } catch (const std::exception &e) {
      stop();
      throw Error("only " + std::to_string(threads_.size()) + " of the " + std::to_string(count) +
                  " rank threads could be started (" + e.what() + "): raise the limit on threads (ulimit -u)");
    }
  }

  ~HostExecutor() override { stop(); }

  void submit(std::shared_ptr<const StepBatch> batch) override {
    if (!batch)
      throw Error("a step without a batch was submitted");
    validate(limits_, *batch);
    std::lock_guard lock(submit_mutex_);
    const uint64_t number = submitted_.load(std::memory_order_relaxed);
    if (number != 0 && batch->id <= last_id_)
      throw Error("step " + std::to_string(batch->id) + " was submitted after step " + std::to_string(last_id_) +
                  ": step ids must rise");
    Step &step = slots_[number % slots_.size()];
    while (step.ranks_left.load(std::memory_order_acquire) != 0) {
      const uint32_t seen = freed_.load();
      if (step.ranks_left.load(std::memory_order_acquire) == 0)
        break;
      freed_.wait(seen, {}, 1h);
    }
    last_id_ = batch->id;
    step.assign(limits_, std::move(batch));
    step.ranks_left.store(static_cast<uint32_t>(ranks_.size()), std::memory_order_relaxed);
    submitted_.store(number + 1, std::memory_order_release);
    work_.advance();
  }

  unsigned max_in_flight() const override { return static_cast<unsigned>(slots_.size()); }

  std::vector<RankMemory> memory() const override {
    std::vector<RankMemory> result;
    for (const auto &rank : ranks_) {
      result.push_back(rank->memory());
      result.back().communication = world_->channel_bytes(rank->index());
    }
    return result;
  }

private:
  // The life of a rank's thread.
  void serve(uint32_t index) {
    name_this_thread(("rank " + std::to_string(index)).c_str());
    for (uint64_t next = 0; wait_for_step(next); ++next)
      run_step(*ranks_[index], slots_[next % slots_.size()]);
  }

  // False once the executor is being destroyed and no step is left.
  bool wait_for_step(uint64_t next) {
    while (true) {
      const uint32_t seen = work_.load();
      if (submitted_.load(std::memory_order_acquire) > next)
        return true;
      if (WaitWord::is_closed(seen))
        return false;
      work_.wait(seen, {idle_spin_}, 1h);
    }
  }

  void run_step(Rank &rank, Step &step) {
    try {
      if (!world_->aborted())
        rank.run(step);
    } catch (const std::exception &e) {
      world_->abort(e.what()); // keeps the first sentence
    } catch (...) {
      world_->abort("rank " + std::to_string(rank.index()) + " failed for a reason it does not name");
    }
    if (rank.index() != output_rank_)
      return leave(step);
    // The slot is left before the callback, so that the callback may submit the next step; the logits stay, because
    // they are overwritten by this thread alone.
    const std::shared_ptr<const StepBatch> batch = step.batch;
    const std::string error = world_->aborted() ? world_->reason() : std::string();
    const LogitsView logits = error.empty() ? rank.logits(step) : LogitsView{};
    leave(step);
    try {
      on_done_(*batch, logits, error);
    } catch (const std::exception &e) {
      world_->abort(std::string("the receiver of step results failed: ") + e.what());
    }
  }

  void leave(Step &step) {
    if (step.ranks_left.fetch_sub(1, std::memory_order_acq_rel) == 1)
      freed_.advance();
  }

  void stop() {
    if (world_)
      world_->abort("the executor was shut down");
    work_.close();
    for (std::thread &thread : threads_)
      if (thread.joinable())
        thread.join();
  }

  std::shared_ptr<const plan::LoadedPlan> plan_;
  StepLimits limits_;
  uint32_t output_rank_;
  StepDone on_done_;
  std::chrono::nanoseconds idle_spin_{};
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<comm::HostWorld> world_;

  std::mutex submit_mutex_;
  uint64_t last_id_ = 0;
  std::vector<Step> slots_;
  std::atomic<uint64_t> submitted_{0};
  WaitWord work_;  // moves with submitted_
  WaitWord freed_; // moves when a slot becomes free

  std::vector<std::thread> threads_;
};

} // namespace

std::unique_ptr<Executor> Executor::create(std::shared_ptr<const plan::LoadedPlan> plan, const ExecutorOptions &options,
                                           StepDone on_done) {
  if (!plan || !on_done)
    throw Error("an executor needs a plan and someone to hand results to");
  check_plan(*plan);
  return std::make_unique<HostExecutor>(std::move(plan), options, std::move(on_done));
}

} // namespace llmrt::exec
