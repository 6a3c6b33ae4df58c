// The executor on GPUs: which rank runs where, loading, and the loop that runs steps.
#include "runtime/exec/cuda/backend.h"
#include "runtime/exec/cuda/devices.h"
#include "runtime/exec/cuda/rank.h"
#include "runtime/exec/cuda/staging.h"
#include "runtime/exec/cuda/tracer.h"
#include "runtime/exec/rank.h"
#include "runtime/exec/step_loop.h"
#include "runtime/exec/weight_files.h"
#include "runtime/exec/weight_loader.h"
#include "runtime/plan/access.h"
#include "runtime/support/affinity.h"
#include "runtime/support/end_watch.h"
#include "runtime/support/seconds.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace llmrt::exec::cuda {

namespace {

using namespace std::chrono_literals;

// What devices get to let go of what they run, once a rank has failed.
constexpr auto kMostToEnd = 10s;

// How far the ranks' threads are with starting, for the thread that waits for them.
class Start {
public:
  // Says at its end that one more rank is through.
  class Came {
  public:
    explicit Came(Start &start) : start_(start) {}
    ~Came() {
      std::lock_guard lock(start_.mutex_);
      ++start_.ranks_;
      start_.changed_.notify_all();
    }
    Came(const Came &) = delete;
    Came &operator=(const Came &) = delete;

  private:
    Start &start_;
  };

  void count(size_t graphs) {
    std::lock_guard lock(mutex_);
    graphs_ += graphs;
  }
  void captured(size_t graphs) {
    std::lock_guard lock(mutex_);
    done_ += graphs;
    changed_.notify_all();
  }
  // Until all ranks are through; calls `progress`, if any, with the graphs captured so far and all those counted.
  void wait(uint32_t ranks, const std::function<void(uint64_t, uint64_t)> &progress) {
    std::unique_lock lock(mutex_);
    for (uint64_t shown = 0; ranks_ < ranks;) {
      changed_.wait(lock);
      if (progress && done_ != shown)
        progress(shown = done_, graphs_);
    }
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t ranks_ = 0;
  uint64_t done_ = 0, graphs_ = 0;
};

class CudaExecutor final : public Executor {
public:
  CudaExecutor(std::shared_ptr<const plan::LoadedPlan> plan, const ExecutorOptions &options, StepDone on_done)
      : plan_(std::move(plan)) {
    const uint32_t count = plan_->num_ranks();
    auto since = std::chrono::steady_clock::now();
    const auto lap = [&since] {
      const auto before = std::exchange(since, std::chrono::steady_clock::now());
      return seconds_between(before, since);
    };
    // What can be wrong with machine and files comes out before anything large is taken or read.
    const LiveMachine machine = live_machine();
    devices_ = place_ranks(*plan_, machine, options.share_devices);
    check_peers(*plan_, devices_, options.collectives, can_access);
    WeightFiles(*plan_, options.plan_folder);
    check_room(*plan_, machine, devices_, open_devices(devices_));
    make_ranks(options);
    start_times_.devices_s = lap();
    load(options);
    start_times_.weights_s = lap();

    comm::HostWorldOptions world = exec::world_of(*plan_);
    for (comm::ChannelSpec &channel : world.channels)
      channel.slot_bytes = std::max<uint64_t>(channel.slot_bytes, 256); // pointers travel, not rows
    const double deadline = std::clamp(options.collective_timeout_s, 1e-3, 86400.0);
    world.timeout = std::chrono::nanoseconds(static_cast<int64_t>(deadline * 1e9));
    world.cores_to_spare = count <= usable_cores();
    world.trace = options.trace_collectives;
    world_ = comm::HostWorld::create(world);

    StepLoop::Options loop;
    loop.limits = StepLimits::of(plan_->root());
    loop.ranks = count;
    runs_ahead_ = plan_->root().pp() <= 1 && (count == 1 || RankLink::has_everyone(*plan_));
    loop.in_flight = runs_ahead_ ? 2 : std::max(1u, plan_->root().pp());
    loop.output_rank = plan_->root().output_rank();
    loop.idle_spin = world.cores_to_spare ? 50us : 1us;
    loop.stall = world.timeout + world.timeout / 4;
    loop.where = [this](uint32_t rank) { return ranks_[rank]->where(); };
    const RankLinkOptions link = {devices_, loop.in_flight, deadline, options.collectives, options.trace_collectives};
    const auto start = std::make_shared<Start>(); // of the threads too: they may outlive this constructor where it fails
    loop.on_thread_start = [this, link, start, eager = options.eager](uint32_t rank) {
      const Start::Came came(*start); // also where it fails
      try {
        ranks_[rank]->join(link, *world_, eager);
        start->count(ranks_[rank]->graphs());
        size_t before = 0;
        ranks_[rank]->capture([&](size_t done) { start->captured(done - std::exchange(before, done)); });
      } catch (const std::exception &e) {
        world_->abort(e.what()); // before it has come, so that it is seen; keeps the first sentence
      }
    };
    loop.page_tables = false;
    if (runs_ahead_) {
      loop.launch_step = [this](uint32_t rank, const Step &step) { ranks_[rank]->launch(step); };
      loop.poll_step = [this](uint32_t rank, const Step &step, LogitsView &view) { return ranks_[rank]->poll(step, view); };
    } else {
      loop.run_step = [this](uint32_t rank, const Step &step) { return ranks_[rank]->run(step); };
    }
    loop.on_done = std::move(on_done);
    loop_ = std::make_unique<StepLoop>(std::move(loop), *world_);
    start->wait(count, options.on_capture);
    start_times_.graphs_s = lap();
    if (!world_->aborted())
      return;
    watch_.arm(world_->reason(), kMostToEnd);
    throw Error(world_->reason());
  }
  ~CudaExecutor() override {
    if (world_->aborted())
      watch_.arm(world_->reason(), kMostToEnd);
  }

  void submit(std::shared_ptr<const StepBatch> batch) override { loop_->submit(std::move(batch)); }
  bool accepts() const override { return loop_->accepts(); }
  unsigned max_in_flight() const override { return loop_->in_flight(); }
  std::string backend() const override { return "cuda"; }
  std::vector<int> placement() const override { return devices_; }
  uint32_t num_pages() const override { return plan_->root().limits()->num_pages(); }
  bool samples() const override { return true; }
  bool runs_ahead() const override { return runs_ahead_; }
  bool follows() const override { return runs_ahead_; }
  Ceilings measure_ceilings() override {
    Ceilings sum;
    std::vector<int> seen;
    for (uint32_t rank = 0; rank < plan_->num_ranks(); ++rank) {
      if (std::find(seen.begin(), seen.end(), devices_[rank]) != seen.end())
        continue; // ranks that share a device share its ceilings
      seen.push_back(devices_[rank]);
      const Ceilings one = ranks_[rank]->measure_ceilings();
      sum.read_bytes_per_s += one.read_bytes_per_s;
      sum.matmul_flops_per_s += one.matmul_flops_per_s;
      sum.to_device_bytes_per_s += one.to_device_bytes_per_s;
    }
    return sum;
  }
  std::unique_ptr<KernelTracer> trace_kernels() override { return open_tracer(devices_); }
  StartTimes start_times() const override { return start_times_; }
  std::vector<RankMemory> memory() const override {
    std::vector<RankMemory> result;
    for (const auto &rank : ranks_)
      result.push_back(rank->memory());
    return result;
  }

private:
  // All at once.
  void make_ranks(const ExecutorOptions &options) {
    const uint32_t count = plan_->num_ranks();
    ranks_.resize(count);
    std::vector<std::shared_ptr<AlgorithmCache>> caches;
    std::vector<std::exception_ptr> failures(count);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank)
      caches.push_back(cache_of(devices_[rank], options));
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        try {
          ranks_[rank] = std::make_unique<Rank>(plan_, rank, devices_[rank], caches[rank]);
        } catch (...) {
          failures[rank] = std::current_exception();
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const std::exception_ptr &failure : failures)
      if (failure)
        std::rethrow_exception(failure);
  }

  // Devices of one kind share the algorithms chosen for them. Null where none are to be kept, or there is no place to.
  std::shared_ptr<AlgorithmCache> cache_of(int device, const ExecutorOptions &options) {
    const std::filesystem::path folder = cache_folder();
    if (!options.algorithm_cache || folder.empty())
      return nullptr;
    LLMRT_CHECK(cudaSetDevice(device));
    const std::string context = algorithm_context();
    std::shared_ptr<AlgorithmCache> &cache = caches_[context];
    if (!cache)
      cache = std::make_shared<AlgorithmCache>(folder, context);
    return cache;
  }

  void load(const ExecutorOptions &options) {
    std::vector<WeightPlaces> places;
    std::vector<StagingSink::Destination> destinations;
    for (uint32_t rank = 0; rank < plan_->num_ranks(); ++rank) {
      places.push_back(planned_places(plan_->program(rank)));
      destinations.push_back({ranks_[rank]->weights(), devices_[rank]});
      start_times_.weight_bytes += plan_->program(rank).weight_bytes();
    }
    WeightLoad load;
    load.folder = options.plan_folder;
    load.threads = options.threads ? options.threads : usable_cores();
    if (options.on_progress)
      load.on_progress = [&](uint64_t done, uint64_t total) { options.on_progress({done, total}); };
    StagingSink sink(std::move(destinations));
    load_weights(*plan_, places, sink, load);
    for (const auto &rank : ranks_)
      rank->ready();
  }

  EndWatch watch_; // first: it sees the end of all else
  std::shared_ptr<const plan::LoadedPlan> plan_;
  std::vector<int> devices_; // of each rank
  std::map<std::string, std::shared_ptr<AlgorithmCache>> caches_; // by context
  bool runs_ahead_ = false;
  StartTimes start_times_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<comm::HostWorld> world_;
  // Once the threads have ended: no rank's memory goes while another rank's kernels write to it, or wait for it.
  struct Parting {
    const std::vector<std::unique_ptr<Rank>> &ranks;
    ~Parting() {
      for (const auto step : {&Rank::stop_waiting, &Rank::give_up_others, &Rank::drain})
        for (const auto &rank : ranks)
          if (rank)
            (rank.get()->*step)();
    }
  } parting_{ranks_};
  std::unique_ptr<StepLoop> loop_; // last: its threads use all of the above
};

} // namespace

} // namespace llmrt::exec::cuda

extern "C" const char *llmrt_cuda_why_no_devices() {
  static std::string why;
  why = llmrt::exec::cuda::why_no_devices();
  return why.empty() ? nullptr : why.c_str();
}

extern "C" llmrt::exec::Executor *llmrt_cuda_create_executor(const std::shared_ptr<const llmrt::plan::LoadedPlan> &plan,
                                                             const llmrt::exec::ExecutorOptions &options,
                                                             const llmrt::exec::Executor::StepDone &on_done) {
  return new llmrt::exec::cuda::CudaExecutor(plan, options, on_done);
}
