#include "tools/llmrt/profile_recorder.h"

#include <chrono>

namespace llmrt::tool {

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A launch holds nothing but spans that are kept themselves.
void Recorder::begin(uint64_t step, uint32_t rank, uint32_t op) {
  if (op == exec::kPhaseLaunch)
    return;
  if (tracer_)
    tracer_->push(SpanTag{step, rank, op}.pack());
  open_[rank].push_back(steady_ns());
}

void Recorder::end(uint64_t step, uint32_t rank, uint32_t op) {
  if (op == exec::kPhaseLaunch)
    return;
  const int64_t now = steady_ns();
  spans_[rank].push_back({step, op, open_[rank].back(), now});
  open_[rank].pop_back();
  if (tracer_)
    tracer_->pop();
  if (op != exec::kPhaseStep)
    return;
  std::lock_guard lock(mutex_);
  ++ended_;
  changed_.notify_all();
}

bool Recorder::wait(uint64_t steps) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return ended_ >= steps * spans_.size(); });
}

} // namespace llmrt::tool
