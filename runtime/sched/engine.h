// The engine turns requests for text (as token ids) into steps of the executor: admission, continuous
// batching, paged KV with prefix reuse, sampling. Thread-safe; the HTTP server and `llmrt run` talk to
// nothing else.
#pragma once

#include "runtime/exec/executor.h" // RankMemory
#include "runtime/sample/params.h" // SamplingParams, TokenLogprobs
#include "runtime/sched/metrics.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llmrt::plan {
class LoadedPlan;
}

namespace llmrt {

enum class FinishReason { Stop, Length, Cancelled, Error };

struct TokenOutput {
  int32_t id = 0;
  std::optional<TokenLogprobs> logprobs;
};

// What a request's callback receives. Calls come one at a time, in order, from one engine thread that holds
// no lock: return quickly. cancel(), submit() and stats() may be called from it. The last call of a request
// has `finish`.
struct RequestEvent {
  std::vector<TokenOutput> tokens;
  std::optional<FinishReason> finish;
  int32_t stop_token = -1; // the EOS or stop token that ended it (not among the tokens)
  std::string error;       // when finish is Error
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs; // once, with the first event, if asked for
  uint32_t cached_tokens = 0;                                // prompt tokens served from the prefix cache
};

struct EngineRequest {
  std::vector<int32_t> prompt; // at least one token
  SamplingParams sampling;
  std::function<void(RequestEvent &&)> on_event;
  // For tools and tests: sees every logits row that a token was sampled from, [vocab] f32, before penalties;
  // called on the executor's thread, which waits.
  std::function<void(const float *logits, size_t vocab)> on_logits;
};

struct EngineOptions {
  std::string plan_folder;             // weight files are looked up here; empty: beside the plan
  unsigned threads = 0;                // CPU threads; 0: all
  uint32_t max_queued_requests = 1024; // waiting, beyond those that run
  bool prefix_cache = true;
  std::string backend = "auto";         // cpu, cuda, or auto (see exec::ExecutorOptions)
  bool share_devices = false;           // CUDA: several ranks may run on one GPU
  bool eager = false;                   // CUDA: no graphs
  exec::Collectives collectives = exec::Collectives::Auto; // CUDA
  bool check_collectives = false;       // compare sequence numbers at run time
  double collective_timeout_s = 60;     // of waiting for another rank
  bool algorithm_cache = true;          // CUDA: keep the algorithms chosen by timing
  bool run_ahead = true;                // schedule a step while the one before runs, where the executor can
  std::function<void(uint64_t done, uint64_t total)> on_load_progress;
  std::function<void(uint64_t done, uint64_t total)> on_capture_progress; // CUDA: of graphs
};

struct EngineStats {
  uint32_t running = 0, waiting = 0;
  uint32_t pages_total = 0, pages_used = 0;
  uint64_t prompt_tokens = 0, generation_tokens = 0, steps = 0;
  uint64_t prefix_queries = 0, prefix_hits = 0; // tokens
  uint64_t preemptions = 0;
  double seconds_since_progress = 0; // since the last finished step while work is pending; 0 when idle
  std::string fatal;                 // why the engine is dead; empty while it lives
};

enum class SubmitError { None, QueueFull, Draining, Dead, Invalid };

class Engine {
public:
  // Loads the weights and starts. Throws llmrt::Error. Destroying the engine cancels what still runs; its
  // callbacks are called before the destructor returns.
  static std::unique_ptr<Engine> create(std::shared_ptr<const plan::LoadedPlan> plan,
                                        const EngineOptions &options);
  virtual ~Engine() = default;

  // Returns an id, or says why not (`message` is a sentence for the user). The prompt and max_tokens must fit
  // max_model_len together; the caller has checked that, the engine checks it again (Invalid).
  virtual uint64_t submit(EngineRequest request, SubmitError &error, std::string &message) = 0;

  // Ends a request soon; its last event says Cancelled. Unknown or finished ids are fine.
  virtual void cancel(uint64_t id) = 0;

  virtual EngineStats stats() const = 0;

  // A copy of what has been counted since the start.
  virtual EngineMetrics metrics() const { return {}; }

  // See exec::Executor::backend(); empty where there is none.
  virtual std::string backend() const { return {}; }

  // See exec::Executor::placement().
  virtual std::vector<int> placement() const { return {}; }

  // See exec::Executor::measure_ceilings(); only while idle.
  virtual exec::Ceilings measure_ceilings() { return {}; }

  // Shows the steps composed from now on to `observer`, which must outlive them, or to nobody; only while idle.
  virtual void observe(exec::StepObserver * /*observer*/) {}
  // See exec::Executor::trace_kernels(); only while idle.
  virtual std::unique_ptr<exec::KernelTracer> trace_kernels();

  // Measured bytes of each rank, as the executor reports them.
  virtual std::vector<exec::RankMemory> memory() const = 0;

  // See exec::Executor::start_times().
  virtual exec::StartTimes start_times() const { return {}; }

  // Refuses new requests from now on (Draining); those accepted go on.
  virtual void drain() = 0;
  // Blocks until idle or until `seconds` have passed; true when idle.
  virtual bool wait_idle(double seconds) = 0;
};

} // namespace llmrt
