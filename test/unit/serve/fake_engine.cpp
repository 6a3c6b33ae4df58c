// See fake_engine.h.
#include "test/unit/serve/fake_engine.h"

namespace llmrt::test {

FakeEngine::FakeEngine() : thread_([this] { loop(); }) {}

FakeEngine::~FakeEngine() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

SamplingParams FakeEngine::last_sampling() const {
  std::lock_guard lock(mutex_);
  return sampling_;
}

std::vector<int32_t> FakeEngine::last_prompt() const {
  std::lock_guard lock(mutex_);
  return prompt_;
}

void FakeEngine::die(const std::string &why) {
  std::lock_guard lock(mutex_);
  fatal_ = why;
}

uint64_t FakeEngine::submit(EngineRequest request, SubmitError &error, std::string &message) {
  std::unique_lock lock(mutex_);
  error = SubmitError::None;
  if (!fatal_.empty()) {
    error = SubmitError::Dead;
    message = "the engine is dead: " + fatal_;
  } else if (draining_) {
    error = SubmitError::Draining;
    message = "the engine is draining";
  } else if (active_.size() >= max_active) {
    error = SubmitError::QueueFull;
    message = "the queue is full";
  } else if (message = check_sampling(request.sampling, 260); !message.empty()) {
    error = SubmitError::Invalid;
  }
  if (error != SubmitError::None)
    return 0;
  ++submitted;
  sampling_ = request.sampling;
  prompt_ = request.prompt;
  active_.emplace_back(next_id_, std::move(request));
  changed_.notify_all();
  const uint64_t id = next_id_++;
  lock.unlock();
  if (on_submitted)
    on_submitted();
  return id;
}

void FakeEngine::cancel(uint64_t id) {
  std::lock_guard lock(mutex_);
  for (Active &active : active_)
    if (active.id == id)
      active.cancelled = true;
  changed_.notify_all();
}

EngineStats FakeEngine::stats() const {
  std::lock_guard lock(mutex_);
  EngineStats stats;
  stats.running = static_cast<uint32_t>(active_.size());
  stats.fatal = fatal_;
  stats.seconds_since_progress = stalled;
  return stats;
}

void FakeEngine::drain() {
  std::lock_guard lock(mutex_);
  draining_ = true;
}

bool FakeEngine::wait_idle(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return active_.empty(); });
}

// The chosen token, then the ones after it, each less likely.
static TokenLogprobs made_up(int32_t id, int32_t top) {
  TokenLogprobs out;
  out.logprob = -0.25f;
  out.rank = 1;
  for (int32_t i = 0; i < top; ++i)
    out.top.emplace_back((id + i) % 256, -0.25f - static_cast<float>(i));
  return out;
}

bool FakeEngine::advance(Active &active) {
  const SamplingParams &sampling = active.request.sampling;
  RequestEvent event;
  event.cached_tokens = 1;
  if (active.done == 0 && sampling.prompt_logprobs >= 0) {
    event.prompt_logprobs.emplace_back();
    for (size_t i = 1; i < active.request.prompt.size(); ++i)
      event.prompt_logprobs.emplace_back(made_up(active.request.prompt[i], sampling.prompt_logprobs));
  }
  const bool at_end = active.done >= script.size();
  if (active.cancelled) {
    event.finish = FinishReason::Cancelled;
    ++cancelled;
  } else if (!fail_with.empty() && active.done == 3) {
    event.finish = FinishReason::Error;
    event.error = fail_with;
  } else if (active.done >= sampling.max_tokens) {
    event.finish = FinishReason::Length;
  } else if (at_end && !sampling.ignore_eos && active.done >= sampling.min_tokens) {
    event.finish = FinishReason::Stop;
    event.stop_token = kEos;
  } else {
    TokenOutput token;
    token.id = static_cast<unsigned char>(script[active.done % script.size()]);
    if (sampling.logprobs >= 0)
      token.logprobs = made_up(token.id, sampling.logprobs);
    event.tokens.push_back(token);
    ++active.done;
    if (active.done >= sampling.max_tokens)
      event.finish = FinishReason::Length;
  }
  const bool ended = event.finish.has_value();
  if (ended)
    ++finished;
  active.request.on_event(std::move(event));
  return !ended;
}

void FakeEngine::loop() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !active_.empty(); });
      if (stopping_)
        for (Active &active : active_)
          active.cancelled = true;
      if (stopping_ && active_.empty())
        return;
    }
    if (step.count() > 0)
      std::this_thread::sleep_for(step);
    size_t count;
    {
      std::lock_guard lock(mutex_);
      count = active_.size();
    }
    // Only this thread removes, and others only append: the first `count` stay where they are without the lock.
    auto it = active_.begin();
    for (size_t i = 0; i < count; ++i) {
      std::list<Active> ended; // destroyed after the lock, with the callback in it
      const bool goes_on = advance(*it);
      std::lock_guard lock(mutex_);
      auto current = it++;
      if (!goes_on)
        ended.splice(ended.begin(), active_, current);
    }
    changed_.notify_all();
  }
}

} // namespace llmrt::test
