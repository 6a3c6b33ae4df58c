// The executor runs the programs of a plan: one thread per rank of this process, steps of ragged tokens in,
// logits out. It decides nothing that the plan decides; what a step holds is the scheduler's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llmrt::plan {
class LoadedPlan;
}

namespace llmrt::exec {

class KernelTracer;
class StepObserver;

// How a row's token is to be drawn by the executor itself, where its device can. `draw` false: the row's logits are wanted.
// The same (seed, counter) draws the same number, whatever else is in the step.
struct RowSampling {
  bool draw = false;
  float temperature = 0; // 0: greedy
  float top_p = 1, min_p = 0;
  int32_t top_k = 0;     // 0: off
  uint64_t seed = 0, counter = 0;
};

// A page that a sequence of a step gets at its end.
struct NewPage {
  int32_t seq = 0, page = 0;
};

// One step over S sequences with T new tokens in all. Prefill chunks and decodes mix freely. Or a step that follows the one before
// it, of which only what is new is said.
struct StepBatch {
  uint64_t id = 0;                    // chosen by the caller, strictly rising
  std::vector<int32_t> ids;           // [T] token ids
  std::vector<int32_t> positions;     // [T] position of each token in its sequence
  std::vector<int32_t> seq_starts;    // [S+1] first row of each sequence; seq_starts[S] = T
  std::vector<int32_t> context_lens;  // [S] tokens in the cache once this step is done
  std::vector<int32_t> page_starts;   // [S+1] ranges of `pages`
  std::vector<int32_t> pages;         // page ids of each sequence, covering its context_lens, and its longest context at most
  std::vector<int64_t> slot_mapping;  // [T] page * page_size + offset in the page
  std::vector<int32_t> logits_rows;   // [R] rows of T whose logits are wanted, ascending; R may be 0
  // [R], or empty: no row is drawn by the executor. Only for executors that sample().
  std::vector<RowSampling> sampling = {};
  // [T], or empty: all ids are known. Where >= 0, the token's id is the one that the executor drew for this row of logits in
  // the step submitted before this one, and `ids` holds 0. Only for executors that run_ahead().
  std::vector<int32_t> from_rows = {};
  // Not 0: the id of the step submitted before this one, which this one is once more, each sequence one token further: the token
  // that the step before drew for it, at the next counter. That one had a row and a drawn token for each of its sequences, or
  // followed such a step. All lists but the next are empty then. Only for executors that follow().
  uint64_t follows = 0;
  std::vector<NewPage> new_pages = {}; // of each sequence whose new token is the first of a page, by sequence
  // Sees the step's ops as they run; must outlive the step. On CUDA a step whose ops it wants to see is not replayed as a graph,
  // but has the graph's shapes.
  StepObserver *observer = nullptr;
};

// Logits of a step on the output rank; valid only inside the callback.
struct LogitsView {
  const float *data = nullptr; // [rows, vocab] row-major; null where the executor drew every row's token
  size_t rows = 0;
  size_t vocab = 0;
  const int32_t *tokens = nullptr; // [rows], of the rows that it drew; -1: the row held NaN. Null where it drew none
};

struct LoadProgress {
  uint64_t bytes_done = 0, bytes_total = 0;
};

// How the ranks of GPUs talk: see runtime/exec/cuda/world.h. Auto takes the best that the machine allows.
enum class Collectives { Auto, Nccl, Peer, Host };

struct ExecutorOptions {
  std::string plan_folder;   // relative file paths of the plan start here
  unsigned threads = 0;      // CPU threads shared by all ranks; 0: every core of this process's affinity mask
  double collective_timeout_s = 60;
  std::function<void(const LoadProgress &)> on_progress; // called from one thread, a few times a second
  // CUDA: graphs captured and to be captured, of all ranks together; called from the thread that creates the executor.
  std::function<void(uint64_t done, uint64_t total)> on_capture;
  bool trace_collectives = false; // check sequence numbers at run time
  std::string backend = "auto";   // cpu, cuda, or auto: cuda where plan, machine and build have it, cpu otherwise
  bool share_devices = false;     // CUDA: several ranks may run on one GPU
  Collectives collectives = Collectives::Auto; // CUDA
  bool eager = false;             // CUDA: no graphs
  bool algorithm_cache = true;    // CUDA: keep the library's algorithms that were chosen by timing (algorithm_cache.h)
};

// Measured bytes of one rank, to set beside its ledger. Pages of the KV pool are committed as they are first used.
struct RankMemory {
  uint32_t rank = 0;
  uint64_t weights = 0, arena = 0, workspace = 0, kv = 0;
  uint64_t communication = 0; // messages under way to other stages, counted at the sender
};

// What a machine can do at most, measured, to set beside what was reached. Sums over all devices of the plan.
struct Ceilings {
  double read_bytes_per_s = 0;    // plain reads of memory larger than any cache
  double matmul_flops_per_s = 0;  // large products in the plan's weight type
  double to_device_bytes_per_s = 0; // copies from pinned memory of the host, to one device at a time; 0 on CPUs
};

// What create() took, in seconds, in order.
struct StartTimes {
  double devices_s = 0; // CUDA: finding them, memory on them, streams and libraries
  double weights_s = 0; // from files, or drawn, to where they are used
  double graphs_s = 0;  // CUDA: ranks that join each other, algorithms of products, graphs of decode steps
  uint64_t weight_bytes = 0; // of all ranks
};

class Executor {
public:
  // Called on the output rank's thread once a step's logits stand; `error` is empty unless the step failed, and
  // then the executor is dead and every later step fails with the same sentence. Where a rank is lost for good, called from a
  // thread of the executor's own with a step that it has not finished, whose results may have been handed on already.
  using StepDone = std::function<void(const StepBatch &, const LogitsView &, const std::string &error)>;

  // Verifies what it must, loads the weights, starts the rank threads. Throws llmrt::Error.
  static std::unique_ptr<Executor> create(std::shared_ptr<const plan::LoadedPlan> plan, const ExecutorOptions &options,
                                          StepDone on_done);
  virtual ~Executor() = default;

  // Queues a step; blocks while max_in_flight() steps are unfinished. Steps finish in the order submitted.
  // The batch must fit the plan's limits; one that does not throws llmrt::Error and changes nothing.
  virtual void submit(std::shared_ptr<const StepBatch> batch) = 0;

  // Whether submit() would return at once, also from within StepDone. The answer holds until the next submit().
  virtual bool accepts() const = 0;

  // Steps that can be in flight at once: the pipeline depth, or two where the executor runs ahead. Two steps in flight share
  // a sequence only where it does.
  // Every rank runs the steps in the order submitted, so a step may read pages that an earlier one in flight writes
  // (the prefix cache relies on it).
  virtual unsigned max_in_flight() const = 0;

  // Where the ranks run: "cpu" or "cuda". A plan for GPUs runs on CPUs where there are none.
  virtual std::string backend() const = 0;

  // The device of each rank, by number; ranks of one number share it. Empty: they all share one.
  virtual std::vector<int> placement() const { return {}; }

  // Pages of the KV pool that steps may name: the plan's, or fewer where CPUs have less memory than the plan was made for.
  virtual uint32_t num_pages() const = 0;

  // Tokens that a step should have at most: where CPUs stand in for GPUs, a step of as many as the plan allows may take longer than
  // ranks wait for each other.
  virtual uint32_t step_tokens() const { return UINT32_MAX; }

  // Whether StepBatch::sampling is heeded.
  virtual bool samples() const { return false; }

  // Whether a step may be submitted while the one before it runs that draws some of its ids (StepBatch::from_rows), so that
  // the device goes from step to step without waiting for the host. Only where samples().
  virtual bool runs_ahead() const { return false; }

  // Whether steps may follow others (StepBatch::follows). Only where runs_ahead().
  virtual bool follows() const { return false; }

  virtual std::vector<RankMemory> memory() const = 0;

  virtual StartTimes start_times() const { return {}; }

  // Takes a second or two; no step may be in flight.
  virtual Ceilings measure_ceilings() { return {}; }

  // Starts to time what devices do; null where ops take the time that their observer sees. No step may be in flight. Throws
  // llmrt::Error where it cannot be had.
  virtual std::unique_ptr<KernelTracer> trace_kernels();
};

} // namespace llmrt::exec
