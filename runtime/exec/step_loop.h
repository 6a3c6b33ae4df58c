// The threads of an executor: one per rank, each running every step in the order submitted, at its own pace. Backends say
// what running a step on a rank means: working on it until it is done, or queueing it on a device and asking for its end.
#pragma once

#include "runtime/comm/host_world.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/step.h"
#include "runtime/support/wait_word.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace llmrt::exec {

class StepLoop {
public:
  struct Options {
    StepLimits limits;
    uint32_t ranks = 1;
    unsigned in_flight = 1;   // steps under way at once
    uint32_t output_rank = 0; // whose results are handed on
    std::chrono::nanoseconds idle_spin{}; // how long a rank without work spins before it sleeps
    bool page_tables = true;              // whether run_step() reads Step::page_table
    // A step that no rank has got on with for so long ends the world; 0: never. Somewhat longer than what ranks wait for each
    // other, whose sentences say more.
    std::chrono::nanoseconds stall{};
    // What a rank was last at with others, for that sentence ("in all_reduce 17 of group 'ranks 0-1'"); empty: nothing yet. Called on
    // the watch's thread while the rank's own may hang anywhere, so it may not wait for anything. Null: not known.
    std::function<std::string(uint32_t rank)> where = {};
    std::function<void(uint32_t rank)> on_thread_start = {};
    // All are called on the rank's own thread. Runs all ops of a step on a rank; on the output rank returns its logits,
    // valid until the rank's next step.
    std::function<LogitsView(uint32_t rank, const Step &step)> run_step = {};
    // Or, for devices that run ahead: queues a step behind the one that runs, and says whether the oldest step queued has
    // finished, with its logits, valid until the next launch. Steps are launched as soon as they are submitted.
    std::function<void(uint32_t rank, const Step &step)> launch_step = {};
    std::function<bool(uint32_t rank, const Step &step, LogitsView &logits)> poll_step = {};
    Executor::StepDone on_done;
  };

  // Starts the threads. `world` must outlive this object; a rank that fails ends it. Throws llmrt::Error.
  StepLoop(Options options, comm::HostWorld &world);
  ~StepLoop(); // ends the world, joins the threads

  // As Executor::submit().
  void submit(std::shared_ptr<const StepBatch> batch);
  // As Executor::accepts().
  bool accepts() const {
    return slots_[submitted_.load(std::memory_order_relaxed) % slots_.size()].ranks_left.load(std::memory_order_acquire) == 0;
  }
  unsigned in_flight() const { return static_cast<unsigned>(slots_.size()); }

private:
  void serve(uint32_t rank);
  void serve_device(uint32_t rank);
  bool is_submitted(uint64_t next) const { return submitted_.load(std::memory_order_acquire) > next; }
  Step &slot_of(uint64_t number) { return slots_[number % slots_.size()]; }
  bool wait_for_step(uint64_t next);
  template <typename F> void guarded(uint32_t rank, F &&work);
  void finish(uint32_t rank, Step &step, const LogitsView &logits);
  void leave(uint32_t rank, Step &step);
  void watch();
  void watch_steps(std::unique_lock<std::mutex> &lock);
  bool sleep(std::unique_lock<std::mutex> &lock, std::chrono::nanoseconds time);
  std::string behind(uint64_t step) const;
  uint32_t last_rank() const;
  std::string whereabouts() const;
  uint64_t finished(uint32_t rank) const { return finished_[rank].load(std::memory_order_acquire); }
  void stop();

  Options options_;
  comm::HostWorld &world_;
  std::mutex submit_mutex_;
  uint64_t last_id_ = 0;
  // Where steps may take tokens from the one before: the last whole batch, whose rows those that follow it draw too, and the last.
  std::shared_ptr<const StepBatch> last_whole_;
  FollowedStep last_;
  // A step's state sits in one of as many slots as steps can be in flight; the last rank through frees the slot.
  std::vector<Step> slots_;
  std::atomic<uint64_t> submitted_{0};
  WaitWord work_;  // moves with submitted_
  WaitWord freed_; // moves when a slot becomes free
  std::vector<std::atomic<uint64_t>> finished_; // steps that each rank has left
  std::vector<std::thread> threads_;

  // The watch: of ranks that do not come back.
  std::mutex watch_mutex_;
  std::condition_variable watch_wakes_;
  bool watch_ends_ = false;
  std::atomic<bool> lost_{false}; // some rank will not leave its step
  std::thread watch_;
};

} // namespace llmrt::exec
