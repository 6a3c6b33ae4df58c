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
  Step &step = slots_[number % slots_.size()];
  while (step.ranks_left.load(std::memory_order_acquire) != 0) {
    const uint32_t seen = freed_.load();
    if (step.ranks_left.load(std::memory_order_acquire) == 0)
      break;
    freed_.wait(seen, {}, 1h);
  }
  last_id_ = batch->id;
  step.assign(options_.limits, std::move(batch));
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
  for (uint64_t next = 0; wait_for_step(next); ++next)
    run_step(rank, slots_[next % slots_.size()]);
}

// False once the loop is being destroyed and no step is left.
bool StepLoop::wait_for_step(uint64_t next) {
  while (true) {
    const uint32_t seen = work_.load();
    if (submitted_.load(std::memory_order_acquire) > next)
      return true;
    if (WaitWord::is_closed(seen))
      return false;
    work_.wait(seen, {options_.idle_spin}, 1h);
  }
}

void StepLoop::run_step(uint32_t rank, Step &step) {
  LogitsView logits;
  try {
    if (!world_.aborted())
      logits = options_.run_step(rank, step);
  } catch (const std::exception &e) {
    world_.abort(e.what()); // keeps the first sentence
  } catch (...) {
    world_.abort("rank " + std::to_string(rank) + " failed for a reason it does not name");
  }
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
