#include "tools/llmrt/step_watch.h"

#include "runtime/support/error.h"
#include "runtime/support/seconds.h"
#include "tools/llmrt/profile_recorder.h" // SpanTag

#include <algorithm>
#include <thread>

namespace llmrt::tool {

void StepWatch::begin(uint64_t step, uint32_t rank, uint32_t op) {
  if (op == exec::kPhaseStep)
    open_.fetch_add(1, std::memory_order_relaxed);
  if (op <= exec::kPhaseStep)
    return;
  if (tracer_)
    tracer_->push(SpanTag{step, rank, op}.pack());
  OfRank &of = ranks_[rank];
  (op == exec::kPhaseLaunch ? of.launch_began : of.part_began) = Clock::now();
}

void StepWatch::end(uint64_t, uint32_t rank, uint32_t op) {
  if (op == exec::kPhaseStep)
    open_.fetch_sub(1, std::memory_order_release);
  if (op <= exec::kPhaseStep)
    return;
  OfRank &of = ranks_[rank];
  if (op == exec::kPhaseLaunch) {
    of.inputs.push_back(of.current.inputs);
    of.draws.push_back(of.current.draws);
    of.ops.push_back(seconds_since(of.launch_began) - of.current.total());
    of.current = {};
  } else {
    (op == exec::kPhaseInputs ? of.current.inputs : of.current.draws) += seconds_since(of.part_began);
  }
  if (tracer_)
    tracer_->pop();
}

void StepWatch::engine_worked(uint64_t, exec::EngineWork work, double seconds) {
  std::lock_guard lock(mutex_);
  (work == exec::EngineWork::Compose ? compose_ : work == exec::EngineWork::Results ? results_ : deliver_).push_back(seconds);
}

void StepWatch::restart(exec::KernelTracer *tracer) {
  tracer_ = tracer;
  std::fill(ranks_.begin(), ranks_.end(), OfRank());
  std::lock_guard lock(mutex_);
  compose_.clear();
  results_.clear();
  deliver_.clear();
}

void StepWatch::wait(std::chrono::milliseconds most) const {
  const Clock::time_point start = Clock::now();
  while (open_.load(std::memory_order_acquire) != 0) {
    if (Clock::now() - start > most)
      throw Error("a rank has not ended a step within " + std::to_string(most.count()) + " ms of its result");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

HostTimes StepWatch::host_times() const {
  HostTimes times;
  std::lock_guard lock(mutex_);
  times.compose = quantile(compose_, 0.5);
  times.results = quantile(results_, 0.5);
  times.deliver = quantile(deliver_, 0.5);
  for (const OfRank &of : ranks_) {
    const LaunchTime launch{quantile(of.inputs, 0.5), quantile(of.draws, 0.5), quantile(of.ops, 0.5)};
    if (launch.total() > times.launch.total())
      times.launch = launch;
  }
  return times;
}

std::vector<double> idle_between_steps(const std::vector<exec::KernelSpan> &kernels, uint32_t rank) {
  std::vector<double> result;
  uint64_t current = 0; // the step whose ops were met last
  int64_t busy_until = 0, idle = 0;
  for (const exec::KernelSpan &kernel : kernels) {
    const SpanTag tag = SpanTag::unpack(kernel.tag);
    if (kernel.copy || kernel.tag == 0 || tag.rank != rank)
      continue;
    idle += std::max<int64_t>(0, kernel.start_ns - busy_until);
    busy_until = std::max(busy_until, kernel.end_ns);
    if (tag.op != exec::kPhaseLaunch)
      continue;
    if (current != 0 && tag.step == current + 1)
      result.push_back(static_cast<double>(idle) * 1e-9);
    current = tag.step;
    idle = 0;
  }
  return result;
}

double quantile(std::vector<double> values, double part) {
  if (values.empty())
    return 0;
  const auto at = values.begin() + static_cast<ptrdiff_t>(part * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

} // namespace llmrt::tool
