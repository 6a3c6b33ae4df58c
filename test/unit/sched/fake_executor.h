// An executor without a model for tests of the engine. It keeps simulated KV pages, checks every rule that a
// StepBatch must obey, and computes logits as a hash of what the pages of a sequence really hold, so that any
// mistake in scheduling or paging changes the output. fake_generate() gives the right answer from the token
// history alone.
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/sched/engine_model.h"
#include "runtime/support/error.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace llmrt::test {

struct FakeOptions {
  unsigned depth = 1;                // steps in flight
  bool samples = false;              // draws tokens itself, with the host's sampler
  bool ahead = false;                // and takes ids from the step before; the depth should be 2
  bool follows = false;              // and steps that follow others
  bool blocks = false;               // submit() may always have to wait: it is not for the thread that reports
  unsigned patience_us = 0;          // ahead: a step is reported this long after it ended, or once the next one is there
  unsigned max_delay_us = 0;         // each step takes a random time up to this
  uint64_t fail_at_step = 0;         // this step and all later ones fail; 0: never
  uint64_t throw_at_step = 0;        // submit() throws; 0: never
  int32_t nan_after_token = -1;      // a row whose newest token is this one is all NaN
  std::atomic<bool> *gate = nullptr; // steps wait while it is false
};

// What a run of the fake executor saw; shared with the test, since the engine owns the executor.
struct FakeLog {
  std::mutex mutex;
  std::vector<std::string> violations; // rules broken by the engine
  uint64_t steps = 0, tokens = 0, rows = 0, max_seqs = 0, max_in_flight = 0;
  uint64_t mixed_steps = 0; // with prefill and decode together
  uint64_t ahead_steps = 0; // with ids from the step before
  uint64_t followed = 0;    // steps that follow another
  uint64_t drawn = 0;       // rows
};

uint64_t fake_mix(uint64_t a, uint64_t b);
// The value that one cached token contributes; the sum over a context decides the logits after it.
uint64_t fake_value(int32_t token, int64_t position);
void fake_logits(uint64_t context_sum, size_t vocab, float *out);

class FakeExecutor final : public exec::Executor {
public:
  FakeExecutor(const EngineModel &model, const FakeOptions &options, std::shared_ptr<FakeLog> log,
               StepDone on_done);
  ~FakeExecutor() override;
  void submit(std::shared_ptr<const exec::StepBatch> batch) override;
  bool accepts() const override;
  unsigned max_in_flight() const override { return options_.depth; }
  bool samples() const override { return options_.samples; }
  bool runs_ahead() const override { return options_.ahead; }
  bool follows() const override { return options_.follows; }
  std::string backend() const override { return "fake"; }
  uint32_t num_pages() const override { return model_.num_pages; }
  std::vector<exec::RankMemory> memory() const override { return {{0, 1, 2, 3, 4}}; }

private:
  struct Executed {
    std::shared_ptr<const exec::StepBatch> batch;
    std::vector<float> logits;
    std::vector<int32_t> tokens;
    bool failed = false;
  };
  void run();
  void report(Executed &step);
  std::shared_ptr<const exec::StepBatch> whole(std::shared_ptr<const exec::StepBatch> batch);
  void check(const exec::StepBatch &batch);
  void violation(const exec::StepBatch &batch, const std::string &what);
  void check_from_rows(const exec::StepBatch &batch);
  bool continues(const exec::StepBatch &earlier, const exec::StepBatch &batch, size_t seq, int32_t page) const;
  void execute(const exec::StepBatch &batch, std::vector<float> &logits);
  void draw(const exec::StepBatch &batch, std::vector<float> &logits);

  struct Slot {
    int32_t token = -1;
    int64_t position = -1;
  };
  const EngineModel model_;
  const FakeOptions options_;
  std::shared_ptr<FakeLog> log_;
  StepDone on_done_;
  std::vector<Slot> slots_; // [num_pages * page_size]
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const exec::StepBatch>> queue_; // the front ones are being executed
  uint64_t last_id_ = 0;
  std::vector<exec::RowSampling> last_sampling_; // of the step submitted last
  std::shared_ptr<const exec::StepBatch> last_;  // where steps may follow: the step submitted last, whole
  std::vector<int32_t> tokens_;                  // drawn by the step executed last
  bool stop_ = false;
  std::thread thread_;
};

// The tokens that a request must produce, computed without batching, pages or the engine.
struct FakeAnswer {
  std::vector<int32_t> tokens;
  FinishReason finish = FinishReason::Length;
  int32_t stop_token = -1;
};
FakeAnswer fake_generate(const EngineModel &model, const std::vector<int32_t> &prompt,
                         const SamplingParams &sampling);

} // namespace llmrt::test
