#include "runtime/exec/step_loop.h"

#include "runtime/support/affinity.h"
#include "runtime/support/error.h"

#include <algorithm>
#include <array>
#include <string>

namespace llmrt::exec {

using namespace std::chrono_literals;

StepLoop::StepLoop(Options options, comm::HostWorld &world)
    : options_(std::move(options)), world_(world), slots_(options_.in_flight), finished_(options_.ranks) {
  try {
    for (uint32_t rank = 0; rank < options_.ranks; ++rank)
      threads_.emplace_back([this, rank] { serve(rank); });
    if (options_.stall.count() > 0)
      watch_ = std::thread([this] { watch(); });
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
  if (!batch->follows)
    validate(options_.limits, *batch);
  std::lock_guard lock(submit_mutex_);
  const uint64_t number = submitted_.load(std::memory_order_relaxed);
  if (number != 0 && batch->id <= last_id_)
    throw Error("step " + std::to_string(batch->id) + " was submitted after step " + std::to_string(last_id_) +
                ": step ids must rise");
  const bool follows = batch->follows != 0;
  if ((follows || !batch->from_rows.empty()) && !options_.launch_step)
    throw Error("step " + std::to_string(batch->id) + " takes tokens from the step before, which this executor does not do");
  if (follows)
    last_.validate(options_.limits, *batch);
  else if (!batch->from_rows.empty())
    validate_from_rows(*batch, last_whole_.get());
  Step &step = slot_of(number);
  while (step.ranks_left.load(std::memory_order_acquire) != 0) {
    const uint32_t seen = freed_.load();
    if (step.ranks_left.load(std::memory_order_acquire) == 0)
      break;
    if (lost_.load(std::memory_order_acquire))
      throw Error(world_.reason());
    freed_.wait(seen, {}, 1h);
  }
  last_id_ = batch->id;
  if (follows) {
    last_.advance(*batch);
  } else if (options_.launch_step) {
    last_whole_ = batch;
    last_.set(*batch);
  }
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
    return leave(rank, step);
  // The slot is left before the callback, so that the callback may submit the next step; the logits stay, because
  // they are overwritten by this thread alone.
  const std::shared_ptr<const StepBatch> batch = step.batch;
  const std::string error = world_.aborted() ? world_.reason() : std::string();
  leave(rank, step);
  try {
    options_.on_done(*batch, error.empty() ? logits : LogitsView{}, error);
  } catch (const std::exception &e) {
    world_.abort(std::string("the receiver of step results failed: ") + e.what());
  }
}

void StepLoop::leave(uint32_t rank, Step &step) {
  finished_[rank].fetch_add(1, std::memory_order_release);
  if (step.ranks_left.fetch_sub(1, std::memory_order_acq_rel) == 1)
    freed_.advance();
}

bool StepLoop::sleep(std::unique_lock<std::mutex> &lock, std::chrono::nanoseconds time) {
  return !watch_wakes_.wait_for(lock, time, [this] { return watch_ends_; });
}

// Ranks that wait for each other find out themselves when one is lost. A rank that nobody waits for is the watch's, and so is
// telling the caller where the output rank, which would, has nothing to hand on or is the one that is lost.
void StepLoop::watch() {
  name_this_thread("watch");
  std::unique_lock lock(watch_mutex_);
  while (!world_.aborted()) {
    watch_steps(lock);
    if (watch_ends_)
      return;
  }
  if (!sleep(lock, 1s))
    return;
  const uint64_t step = finished(last_rank());
  if (!is_submitted(step))
    return; // all have come back
  const std::shared_ptr<const StepBatch> batch = slot_of(step).batch; // somebody has not left it
  lost_.store(true, std::memory_order_release);
  freed_.advance();
  lock.unlock();
  options_.on_done(*batch, {}, world_.reason());
}

// The rank that has left the fewest steps.
uint32_t StepLoop::last_rank() const {
  uint32_t last = 0;
  for (uint32_t rank = 1; rank < options_.ranks; ++rank)
    last = finished(rank) < finished(last) ? rank : last;
  return last;
}

// "rank 1 has", or "ranks 0, 2 have": those that are no further than that step. Of several, each may be the one that others wait for.
std::string StepLoop::behind(uint64_t step) const {
  std::string ranks;
  int count = 0;
  for (uint32_t rank = 0; rank < options_.ranks; ++rank)
    if (finished(rank) <= step)
      ranks += (count++ ? ", " : "") + std::to_string(rank);
  if (count == 0)
    return "a rank had"; // and has by now
  return count > 1 ? "ranks " + ranks + " have" : "rank " + ranks + " has";
}

// " (rank 0 was last in all_reduce 17 of group 'ranks 0-1', …)"
std::string StepLoop::whereabouts() const {
  std::string all;
  for (uint32_t rank = 0; options_.where && rank < options_.ranks; ++rank)
    if (const std::string where = options_.where(rank); !where.empty())
      all += (all.empty() ? " (rank " : ", rank ") + std::to_string(rank) + " was last " + where;
  return all.empty() ? all : all + ")";
}

// Until the watch ends, the world does, or a step stalls, which ends it.
void StepLoop::watch_steps(std::unique_lock<std::mutex> &lock) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::nanoseconds tick = std::clamp<std::chrono::nanoseconds>(options_.stall / 8, 10ms, 500ms);
  Clock::time_point since = Clock::now();
  std::array<uint64_t, 3> seen{};
  while (sleep(lock, tick) && !world_.aborted()) {
    uint64_t left = 0;
    for (uint32_t rank = 0; rank < options_.ranks; ++rank)
      left += finished(rank);
    const uint64_t step = finished(last_rank());
    const std::array<uint64_t, 3> now = {world_.life_signs(), left, submitted_.load(std::memory_order_acquire)};
    if (now != seen || !is_submitted(step)) {
      seen = now;
      since = Clock::now();
    } else if (Clock::now() - since > options_.stall) {
      world_.abort(behind(step) + " not finished step " + std::to_string(slot_of(step).batch->id) + " within " +
                   std::to_string(std::chrono::duration<double>(options_.stall).count()) +
                   " s, and no rank has made progress since" + whereabouts() +
                   "; what it runs on hangs, or is far too slow (then raise the collective timeout)");
      return;
    }
  }
}

void StepLoop::stop() {
  {
    std::lock_guard lock(watch_mutex_);
    watch_ends_ = true;
  }
  watch_wakes_.notify_all();
  if (watch_.joinable())
    watch_.join();
  world_.abort("the executor was shut down");
  work_.close();
  for (std::thread &thread : threads_)
    if (thread.joinable())
      thread.join();
}

} // namespace llmrt::exec
