// The executor on CPUs: memory, weights and a world of ranks from the plan, and the loop that runs steps on them.
#include "runtime/exec/executor.h"

#include <algorithm>
#include <chrono>

#include "runtime/exec/backend.h"
#include "runtime/exec/ceilings.h"
#include "runtime/exec/host_memory.h"
#include "runtime/exec/kernel_tracer.h"
#include "runtime/exec/rank.h"
#include "runtime/exec/step_loop.h"
#include "runtime/exec/weight_loader.h"
#include "runtime/plan/verify.h"
#include "runtime/support/affinity.h"
#include "runtime/support/error.h"
#include "runtime/support/memory_limit.h"
#include "runtime/support/seconds.h"

namespace llmrt::exec {

namespace {

using namespace std::chrono_literals;

void check_plan(const plan::LoadedPlan &plan) {
  if (const std::vector<plan::Problem> problems = plan::verify(plan.root()); !problems.empty())
    throw Error("the plan '" + plan.path() + "' does not hold: " + plan::to_string(problems));
}

class HostExecutor final : public Executor {
public:
  HostExecutor(std::shared_ptr<const plan::LoadedPlan> plan, const ExecutorOptions &options, StepDone on_done)
      : plan_(std::move(plan)) {
    HostMemory memory = plan_host_memory(*plan_, memory_limit_bytes());
    num_pages_ = memory.num_pages;
    const unsigned cores = usable_cores();
    const unsigned threads = options.threads ? options.threads : cores;
    const uint32_t count = plan_->num_ranks();
    unsigned running = 0;
    for (uint32_t rank = 0; rank < count; ++rank) {
      const unsigned share = std::max(1u, threads / count + (rank < threads % count ? 1 : 0));
      ranks_.push_back(std::make_unique<Rank>(plan_, rank, std::move(memory.places[rank]), num_pages_,
                                              static_cast<int>(share)));
      running += share;
    }
    const bool spare = running <= cores;

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
    std::vector<WeightRegion> regions;
    for (const auto &rank : ranks_)
      regions.push_back(rank->weights());
    const auto before = std::chrono::steady_clock::now();
    load_weights(*plan_, regions, load);
    start_times_.weights_s = seconds_since(before);
    for (const auto &rank : ranks_)
      start_times_.weight_bytes += rank->memory().weights;

    for (uint32_t rank = 0; rank < count; ++rank)
      ranks_[rank]->ready(world_->rank(rank));
    StepLoop::Options loop;
    loop.limits = StepLimits::of(plan_->root());
    loop.limits.num_pages = num_pages_;
    loop.ranks = count;
    loop.in_flight = std::max(1u, plan_->root().pp());
    loop.output_rank = plan_->root().output_rank();
    loop.idle_spin = spare ? 50us : 1us;
    if (count > 1) // one rank alone is at most slow
      loop.stall = world.timeout + world.timeout / 4;
    loop.run_step = [this](uint32_t rank, const Step &step) {
      ranks_[rank]->run(step);
      return ranks_[rank]->logits(step);
    };
    loop.on_done = std::move(on_done);
    loop_ = std::make_unique<StepLoop>(std::move(loop), *world_);
  }

  void submit(std::shared_ptr<const StepBatch> batch) override { loop_->submit(std::move(batch)); }

  bool accepts() const override { return loop_->accepts(); }
  unsigned max_in_flight() const override { return loop_->in_flight(); }
  std::string backend() const override { return "cpu"; }
  uint32_t num_pages() const override { return num_pages_; }
  uint32_t step_tokens() const override {
    return stands_in(*plan_) ? std::max(512u, plan_->root().limits()->max_num_seqs()) : UINT32_MAX;
  }

  Ceilings measure_ceilings() override { return measure_host(plan_->root().model()->weight_dtype()); }

  StartTimes start_times() const override { return start_times_; }
  std::vector<RankMemory> memory() const override {
    std::vector<RankMemory> result;
    for (const auto &rank : ranks_) {
      result.push_back(rank->memory());
      result.back().communication = world_->channel_bytes(rank->index());
    }
    return result;
  }

private:
  std::shared_ptr<const plan::LoadedPlan> plan_;
  uint32_t num_pages_ = 0;
  StartTimes start_times_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<comm::HostWorld> world_;
  std::unique_ptr<StepLoop> loop_; // last: its threads use all of the above
};

} // namespace

std::unique_ptr<KernelTracer> Executor::trace_kernels() { return nullptr; }

std::unique_ptr<Executor> Executor::create(std::shared_ptr<const plan::LoadedPlan> plan, const ExecutorOptions &options,
                                           StepDone on_done) {
  if (!plan || !on_done)
    throw Error("an executor needs a plan and someone to hand results to");
  if (std::unique_ptr<Executor> executor = create_on_devices(plan, options, on_done))
    return executor;
  check_plan(*plan);
  return std::make_unique<HostExecutor>(std::move(plan), options, std::move(on_done));
}

} // namespace llmrt::exec
