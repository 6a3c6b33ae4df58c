// One rank on its GPU: memory, program, stream; runs a step eagerly or by replaying a captured graph. A step may be launched
// while the one before it runs, and take tokens that it draws.
#pragma once

#include "runtime/exec/cuda/program.h"
#include "runtime/exec/executor.h"
#include "runtime/support/region.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llmrt::exec::cuda {

class Rank {
public:
  // Allocates the rank's memory on CUDA device `device`, which the calling thread must not have changed.
  // `cache`: see Products.
  Rank(std::shared_ptr<const plan::LoadedPlan> plan, uint32_t rank, int device, std::shared_ptr<AlgorithmCache> cache);
  ~Rank();

  std::byte *weights() const { return weights_.data(); } // on the device
  // Once the weights are loaded: prepares the program.
  void ready();
  // On the rank's own thread: makes its device current and joins the other ranks.
  void join(const RankLinkOptions &options, comm::HostWorld &world, bool eager);
  // How many graphs capture() makes: of every bucket that a decode step can be padded to, or none.
  size_t graphs() const;
  // After join(), all ranks at once: captures them, and tells how many there are after every few.
  void capture(const std::function<void(size_t done)> &progress);

  // Queues all ops of a step; two steps at most may be under way.
  void launch(const Step &step);
  // The end of ranks that others may wait for, in these steps, each for all ranks before the next; from the thread that uses
  // the rank, or once that has ended. Else memory goes that others still write to. The first never blocks.
  void stop_waiting();   // what is queued no longer waits for other ranks in our kernels: results are worthless from here on
  void give_up_others(); // nor in NCCL's; graphs go
  void drain();          // until nothing is under way on the device

  // Whether the oldest step launched, which `step` is, has finished. Then, on the output rank, its results are in pinned
  // host memory until the next launch. Throws where the device failed or has had too long.
  bool poll(const Step &step, LogitsView &view);
  // Both: launches, and waits.
  LogitsView run(const Step &step);

  // What it has come to with other ranks, as RankLink::where(); once it has joined, from any thread.
  std::string where() const { return link_ ? link_->where() : std::string(); }

  RankMemory memory() const;
  Ceilings measure_ceilings() const; // of its device

private:
  using Clock = std::chrono::steady_clock;
  // A step under way.
  struct Turn {
    size_t rows = 0;             // of logits
    bool drawn = false;          // some of their tokens
    bool together = false;       // by all ranks, each from its own logits: all of them have the tokens
    std::byte *logits = nullptr; // where they go on the host, if they are wanted
    DeviceMemory tokens;         // drawn, for the next step
    PinnedMemory host_tokens;    // and for the host, on the output rank
    std::unique_ptr<Event> finished;
  };
  // What a step draws. Those that follow it, the same.
  struct Draws {
    bool some = false, all = false; // rows
    bool by_chance = false;         // some of them
  };
  static Draws draws_of(const StepBatch &batch);
  void join_others(const RankLinkOptions &options, comm::HostWorld &world, bool eager);
  void capture_all(const std::function<void(size_t done)> &progress);
  StepShape shape_of(const Step &step) const;
  void queue(const Step &step);
  std::string whereabouts() const;
  template <typename F> void named(const std::string &what, F &&f) const;
  bool is_late(Clock::time_point since) const;
  cudaError_t wait_for(cudaEvent_t event, const std::string &what);
  [[noreturn]] void give_up(const std::string &what);
  [[noreturn]] static void lost(cudaError_t status);
  const int32_t *tokens_before(const Step &step);
  void bring_inputs(const Step &step, const StepShape &shape, const int32_t *before, const Draws &draws);
  std::unique_ptr<Graph> capture(const OpContext &context) const;
  bool replay(const Step &step, StepShape &shape, const int32_t *before, const Draws &draws);
  bool draws_together(const Draws &draws) const;
  void collect(const Step &step, Turn &turn, const Draws &draws);
  std::byte *logits_memory(const Turn &other);

  std::shared_ptr<const plan::LoadedPlan> plan_;
  StepLimits limits_;
  std::vector<int> seq_buckets_, context_buckets_; // ascending
  uint32_t rank_;
  int device_;
  double deadline_s_ = 60;
  bool graphs_ = false;
  DeviceMemory weights_, arena_, kv_;
  std::unique_ptr<Stream> stream_, results_; // the steps; tokens drawn together on their way to the host
  std::unique_ptr<StepInputs> inputs_;
  std::unique_ptr<Products> products_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<RankLink> link_;
  std::unique_ptr<Event> computed_;
  Turn turns_[2];
  StepShape shape_; // of the step launched last, as it is
  Draws draws_;
  uint64_t launched_ = 0, collected_ = 0;
  Clock::time_point waiting_since_{};
  PinnedMemory logits_[2]; // on the output rank; of a lone one the second only once two steps under way both want them
  std::map<std::pair<int, int>, std::unique_ptr<Graph>> graph_by_bucket_; // (sequences, context)
};

} // namespace llmrt::exec::cuda
