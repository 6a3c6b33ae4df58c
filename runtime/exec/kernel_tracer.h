// Times of a device's kernels and copies, each under the tag of the work that launched it. Backends whose ops end before
// their work does have one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace llmrt::exec {

struct KernelSpan {
  uint64_t tag = 0; // 0: launched under no tag
  uint32_t device = 0, stream = 0;
  int64_t start_ns = 0, end_ns = 0; // of the steady clock
  std::string name;
  bool copy = false; // a copy or a fill, no kernel
};

// Records from its creation to its end; one at a time in a process.
class KernelTracer {
public:
  virtual ~KernelTracer() = default;
  // What this thread launches up to pop() belongs to `tag`, which is not 0.
  virtual void push(uint64_t tag) = 0;
  virtual void pop() = 0;
  // All kernels and copies that ended since the last call, by time; call when the device is idle. Throws llmrt::Error where
  // records were lost.
  virtual std::vector<KernelSpan> collect() = 0;
};

} // namespace llmrt::exec
