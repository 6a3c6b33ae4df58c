// Lets a tool see the ops of a step as they run. A batch names its observer; a step without one pays a pointer that is
// looked at once an op.
#pragma once

#include <cstdint>

namespace llmrt::exec {

// What a step does beside its plan's ops, numbered where no op is.
enum Phase : uint32_t {
  kPhaseFirst = 0xffffff00,
  kPhaseStep = kPhaseFirst, // all of the step on a rank
  kPhaseLaunch,             // CUDA: the host's part, until all of the step is queued
  kPhaseInputs,             // CUDA: the batch to the device
  kPhaseAngles,             // CPU: the table of rope angles
  kPhaseSampling,           // tokens drawn on the device, copies included
  kPhaseResults,            // CUDA: logits to the host
};

// What the engine does on the host for a step: until it is submitted; from its results on; its tokens' callbacks, which nothing
// waits for.
enum class EngineWork { Compose, Results, Deliver };

// Called on the ranks' own threads, each rank from one thread. On CUDA what lies between begin() and end() is the launch of
// the work, not the work; a tracer (kernel_tracer.h) ties the two together.
class StepObserver {
public:
  virtual ~StepObserver() = default;
  // `op`: an index into the rank's Program.ops, or a Phase. One op may begin and end more than once in a step. Spans of a
  // rank do not overlap, but that kPhaseStep holds them all, and kPhaseLaunch those of a launch. Where a step is launched before
  // the one before it has ended, so are its kPhaseStep and that one's.
  virtual void begin(uint64_t step, uint32_t rank, uint32_t op) = 0;
  virtual void end(uint64_t step, uint32_t rank, uint32_t op) = 0;
  // False: phases are all that it wants to see, so that CUDA may replay graphs as usual.
  virtual bool sees_ops() const { return true; }
  // On threads of the engine or the output rank's, by one thread at a time for each kind of work. What is delivered late may be
  // told once for several steps.
  virtual void engine_worked(uint64_t /*step*/, EngineWork, double /*seconds*/) {}
};

// The span of one op, where somebody looks.
class ObservedSpan {
public:
  ObservedSpan(StepObserver *observer, uint64_t step, uint32_t rank, uint32_t op)
      : observer_(observer), step_(step), rank_(rank), op_(op) {
    if (observer_)
      observer_->begin(step_, rank_, op_);
  }
  ~ObservedSpan() {
    if (observer_)
      observer_->end(step_, rank_, op_);
  }
  ObservedSpan(const ObservedSpan &) = delete;
  ObservedSpan &operator=(const ObservedSpan &) = delete;

private:
  StepObserver *observer_;
  uint64_t step_;
  uint32_t rank_, op_;
};

} // namespace llmrt::exec
