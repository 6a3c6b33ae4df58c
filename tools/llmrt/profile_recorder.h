// Keeps what an observed step did: when each op began and ended on the rank's thread, and, with a tracer, the kernels that
// it launched.
#pragma once

#include "runtime/exec/kernel_tracer.h"
#include "runtime/exec/step_observer.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace llmrt::tool {

// Of the steady clock, in nanoseconds.
int64_t steady_ns();

struct OpSpan {
  uint64_t step = 0;
  uint32_t op = 0; // index into Program.ops, or an exec::Phase
  int64_t start_ns = 0, end_ns = 0;
};

// What a tag of the tracer says.
struct SpanTag {
  uint64_t step = 0;
  uint32_t rank = 0, op = 0;

  uint64_t pack() const { return step << 40 | uint64_t{rank} << 28 | (op & kOpMask); }
  static SpanTag unpack(uint64_t tag) {
    SpanTag result{tag >> 40, static_cast<uint32_t>(tag >> 28) & 0xfff, static_cast<uint32_t>(tag) & kOpMask};
    if (result.op >= (exec::kPhaseFirst & kOpMask))
      result.op |= ~kOpMask; // a phase
    return result;
  }
  static constexpr uint32_t kOpMask = 0xfffffff;
};

class Recorder final : public exec::StepObserver {
public:
  // `tracer` may be null.
  Recorder(uint32_t ranks, exec::KernelTracer *tracer) : tracer_(tracer), spans_(ranks), open_(ranks) {}

  void begin(uint64_t step, uint32_t rank, uint32_t op) override;
  void end(uint64_t step, uint32_t rank, uint32_t op) override;

  // Until every rank has ended `steps` steps; then spans() may be read. False after a minute without one.
  bool wait(uint64_t steps);
  const std::vector<OpSpan> &spans(uint32_t rank) const { return spans_[rank]; }

private:
  exec::KernelTracer *tracer_;
  // Each used by its rank's thread alone until all have ended.
  std::vector<std::vector<OpSpan>> spans_;
  std::vector<std::vector<int64_t>> open_; // starts of spans that have not ended
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t ended_ = 0; // over all ranks
};

} // namespace llmrt::tool
