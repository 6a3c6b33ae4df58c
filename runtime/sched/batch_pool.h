// Batches come back here once the executor has dropped them, to be filled again without allocating.
#pragma once

#include "runtime/exec/executor.h"

#include <memory>
#include <mutex>
#include <vector>

namespace llmrt::sched {

class BatchPool : public std::enable_shared_from_this<BatchPool> {
public:
  std::shared_ptr<exec::StepBatch> take() {
    std::unique_ptr<exec::StepBatch> batch;
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        batch = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!batch)
      batch = std::make_unique<exec::StepBatch>();
    return {batch.release(), [pool = shared_from_this()](exec::StepBatch *b) {
              std::lock_guard lock(pool->mutex_);
              pool->free_.emplace_back(b);
            }};
  }

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<exec::StepBatch>> free_;
};

} // namespace llmrt::sched
