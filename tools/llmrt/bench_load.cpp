#include "tools/llmrt/bench_load.h"

#include "runtime/support/error.h"
#include "runtime/support/seconds.h"

#include <thread>
#include <utility>

namespace llmrt::tool {

using Clock = Track::Clock;

void BenchLoad::burst(std::vector<Track> &tracks, int input, int output) {
  for (Track &track : tracks)
    submit(input, output, track);
  finish(tracks);
}

double BenchLoad::closed_loop(std::vector<Track> &tracks, int concurrency, int input, int output) {
  const Clock::time_point start = Clock::now();
  for (Track &track : tracks) {
    wait(concurrency - 1);
    submit(input, output, track);
  }
  finish(tracks);
  return seconds_since(start);
}

double BenchLoad::open_loop(std::vector<Track> &tracks, double rate, int input, int output) {
  std::exponential_distribution<double> gap(rate);
  const Clock::time_point start = Clock::now();
  double due = 0; // seconds after the start, so that late wake-ups do not add up
  for (Track &track : tracks) {
    due += gap(arrivals_);
    std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(due)));
    submit(input, output, track);
  }
  finish(tracks);
  return seconds_since(start);
}

// Random prompts, so that no prefix is ever met twice.
void BenchLoad::submit(int input, int output, Track &track) {
  EngineRequest request;
  std::uniform_int_distribution<int32_t> id(0, vocab_ - 1);
  for (int i = 0; i < input; ++i)
    request.prompt.push_back(id(random_));
  request.sampling.temperature = 0;
  request.sampling.max_tokens = static_cast<uint32_t>(output);
  request.sampling.ignore_eos = true;
  {
    std::lock_guard lock(mutex_);
    ++running_;
  }
  track.submitted = Clock::now();
  request.on_event = [this, &track](RequestEvent &&event) {
    const Clock::time_point now = Clock::now();
    track.tokens.insert(track.tokens.end(), event.tokens.size(), now);
    if (!event.finish)
      return;
    track.last = now;
    track.error = event.error;
    std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  };
  SubmitError error = SubmitError::None;
  std::string message;
  engine_.submit(std::move(request), error, message);
  if (error == SubmitError::None)
    return;
  {
    std::lock_guard lock(mutex_);
    --running_;
  }
  wait(0);
  throw Error("the benchmark's request was refused: " + message);
}

void BenchLoad::finish(const std::vector<Track> &tracks) {
  wait(0);
  for (const Track &track : tracks)
    if (!track.error.empty())
      throw Error("a request of the benchmark failed: " + track.error);
}

void BenchLoad::wait(int most) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ <= most; });
}

} // namespace llmrt::tool
