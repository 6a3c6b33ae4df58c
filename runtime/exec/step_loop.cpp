#include "runtime/exec/step_loop.h"

#include "runtime/support/affinity.h"
#include "runtime/support/error.h"

#include <string>

namespace llmrt::exec {

using namespace std::chrono_literals;

StepLoop::StepLoop(Options options, comm::HostWorld &world)
    : options_(std::move(options)), world_(world), slots_(options_.in_flight) {
  try {
    for (uint32_t rank = 0; rank < options_.ranks; ++rank)
      threads_.emplace_back([this, rank] { serve(rank); });
  } catch (const std::exception &e) {
    stop();
    throw Error("only " + std::to_string(threads_.size()) + " of the " + std::to_string(options_.ranks) +
                " rank threads could be started (" + e.what() + "): raise the limit on threads (ulimit -u)");
  }
}

StepLoop::~StepLoop() { stop(); }

void StepLoop::submit(std::shared_ptr<const StepBatch> batch) {
  if (!batch)
    throw Error("a step without a batch was submitted");
  validate(options_.limits, *batch);
  std::lock_guard lock(submit_mutex_);
  const uint64_t number = submitted_.load(std::memory_order_relaxed);
  if (number != 0 && batch->id <= last_id_)
    throw Error("step " + std::to_string(batch->id) + " was submitted after step " + std::to_string(last_id_) +
                ": step ids must rise");
  if (!batch->from_rows.empty()) {
    if (!options_.launch_step)
      throw Error("step " + std::to_string(batch->id) +
                  " takes tokens from the step before, which this executor does not do");
    validate_from_rows(*batch, last_.get());
  }
  Step &step = slot_of(number);
  while (step.ranks_left.load(std::memory_order_acquire) != 0) {
    const uint32_t seen = freed_.load();
    if (step.ranks_left.load(std::memory_order_acquire) == 0)
      break;
    freed_.wait(seen, {}, 1h);
  }
  last_id_ = batch->id;
  if (options_.launch_step)
    last_ = batch;
  step.assign(options_.limits, std::move(batch), options_.page_tables);
  step.ranks_left.store(options_.ranks, std::memory_order_relaxed);
  submitted_.store(number + 1, std::memory_order_release);
  work_.advance();
}

// The life of a rank's thread.
void StepLoop::serve(uint32_t rank) {
  name_this_thread(("rank " + std::to_string(rank)).c_str());
  try {
    if (options_.on_thread_start)
      options_.on_thread_start(rank);
  } catch (const std::exception &e) {
    world_.abort(e.what());
  }
  if (options_.launch_step)
    return serve_device(rank);
  for (uint64_t next = 0; wait_for_step(next); ++next) {
    LogitsView logits;
    guarded(rank, [&] { logits = options_.run_step(rank, slot_of(next)); });
    finish(rank, slot_of(next), logits);
  }
}

// A step that is there is launched before the end of the one before it is waited for: the device always has work queued.
// All ranks launch all steps in the same order, so what ranks do together while launching meets.
void StepLoop::serve_device(uint32_t rank) {
  using Clock = std::chrono::steady_clock;
  uint64_t launched = 0, finished = 0;
  Clock::time_point waiting_since{};
  while (true) {
    if (launched == finished && !wait_for_step(launched))
      return;
    if (is_submitted(launched)) {
      if (launched == finished)
        waiting_since = Clock::now();
      guarded(rank, [&] { options_.launch_step(rank, slot_of(launched)); });
      ++launched;
      continue;
    }
    LogitsView logits;
    bool done = true; // in a world that has ended nothing is waited for
    guarded(rank, [&] {
      done = false;
      done = options_.poll_step(rank, slot_of(finished), logits);
    });
    if (done || world_.aborted()) {
      finish(rank, slot_of(finished), logits);
      ++finished;
      waiting_since = Clock::now();
    } else if (Clock::now() - waiting_since < 50ms) {
      spin_pause();
    } else if (const uint32_t seen = work_.load(); !is_submitted(launched)) {
      work_.wait(seen, {}, 1ms);
    }
  }
}

// False once the loop is being destroyed and no step is left.
bool StepLoop::wait_for_step(uint64_t next) {
  while (true) {
    const uint32_t seen = work_.load();
    if (is_submitted(next))
      return true;
    if (WaitWord::is_closed(seen))
      return false;
    work_.wait(seen, {options_.idle_spin}, 1h);
  }
}

// Work of a rank whose failure ends the world; none is done in a world that has ended.
template <typename F> void StepLoop::guarded(uint32_t rank, F &&work) {
  try {
    if (!world_.aborted())
      work();
  } catch (const std::exception &e) {
    world_.abort(e.what()); // keeps the first sentence
  } catch (...) {
    world_.abort("rank " + std::to_string(rank) + " failed for a reason it does not name");
  }
}

void StepLoop::finish(uint32_t rank, Step &step, const LogitsView &logits) {
  if (rank != options_.output_rank)
    return leave(step);
  // The slot is left before the callback, so that the callback may submit the next step; the logits stay, because
  // they are overwritten by this thread alone.
  const std::shared_ptr<const StepBatch> batch = step.batch;
  const std::string error = world_.aborted() ? world_.reason() : std::string();
  leave(step);
  try {
    options_.on_done(*batch, error.empty() ? logits : LogitsView{}, error);
  } catch (const std::exception &e) {
    world_.abort(std::string("the receiver of step results failed: ") + e.what());
  }
}

void StepLoop::leave(Step &step) {
  if (step.ranks_left.fetch_sub(1, std::memory_order_acq_rel) == 1)
    freed_.advance();
}

void StepLoop::stop() {
  world_.abort("the executor was shut down");
  work_.close();
  for (std::thread &thread : threads_)
    if (thread.joinable())
      thread.join();
}

} // namespace llmrt::exec
