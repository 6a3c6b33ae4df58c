// What the host does for a step, and how long a device waits between steps, seen while the engine schedules as always.
#pragma once

#include "runtime/exec/kernel_tracer.h"
#include "runtime/exec/step_observer.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace llmrt::tool {

// Of a launch, in seconds.
struct LaunchTime {
  double inputs = 0, draws = 0, ops = 0; // the batch to the device; tokens drawn and sent back; all else, graphs above all
  double total() const { return inputs + draws + ops; }
};

// Medians over steps, in seconds.
struct HostTimes {
  double compose = 0; // until the step is handed over
  LaunchTime launch;  // on a rank's thread, of the slowest rank
  double results = 0; // from the step's results to the engine's being done with them
  double deliver = 0; // its tokens' callbacks, on a thread that no step waits for: not in the total
  double total() const { return compose + launch.total() + results; }
};

class StepWatch final : public exec::StepObserver {
public:
  explicit StepWatch(uint32_t ranks) : ranks_(ranks) {}

  void begin(uint64_t step, uint32_t rank, uint32_t op) override;
  void end(uint64_t step, uint32_t rank, uint32_t op) override;
  bool sees_ops() const override { return false; }
  void engine_worked(uint64_t step, exec::EngineWork work, double seconds) override;

  // Forgets what it has seen, and tags kernels with the steps and phases that launch them where there is a tracer. Only while
  // no step is under way.
  void restart(exec::KernelTracer *tracer);
  // Until all ranks have ended all steps that they began. Throws llmrt::Error after `most`.
  void wait(std::chrono::milliseconds most = std::chrono::seconds(10)) const;
  // After wait().
  HostTimes host_times() const;

private:
  using Clock = std::chrono::steady_clock;

  exec::KernelTracer *tracer_ = nullptr;
  std::atomic<int64_t> open_{0}; // steps begun and not ended, over all ranks
  // Each used by one thread until all have ended.
  struct OfRank {
    std::vector<double> inputs, draws, ops; // of every launch
    Clock::time_point launch_began, part_began;
    LaunchTime current;
  };
  std::vector<OfRank> ranks_;
  mutable std::mutex mutex_;
  std::vector<double> compose_, results_, deliver_; // under mutex_: the engine may say so after the step has ended
};

// Seconds in which no kernel of the rank ran between the last op of a step and the first op of the next, for all steps that
// follow each other: the gaps around sampling and inputs, not those kernels themselves. `kernels`: as a tracer gave them to a
// StepWatch's run, by start.
std::vector<double> idle_between_steps(const std::vector<exec::KernelSpan> &kernels, uint32_t rank);

// The value that so much of `values` (0 … 1) is not above; 0 where there are none.
double quantile(std::vector<double> values, double part);

} // namespace llmrt::tool
