#include "tools/llmrt/profile_steps.h"

#include "runtime/support/error.h"

#include <algorithm>

namespace llmrt::tool {

namespace {

std::string str(int64_t value) { return std::to_string(value); }

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

} // namespace

StepRunner::StepRunner(const plan::LoadedPlan &plan, const StepSpec &spec)
    : plan_(plan), spec_(spec), output_rank_(plan.root().output_rank()) {
  const plan::Limits &limits = *plan.root().limits();
  const auto refuse = [](const std::string &what, int64_t is, const char *limit, int64_t most) {
    throw Error("a step of " + what + " needs " + limit + " " + str(is) + ", but the plan has " + str(most) +
                ": profile a smaller step, or compile with a larger limit");
  };
  const std::string what = "batch " + str(spec.batch) + ", new tokens " + str(spec.fresh) + " a sequence, context " + str(spec.context) + ",";
  if (spec.context > static_cast<int64_t>(limits.max_model_len()))
    refuse(what, spec.context, "a max_model_len of", limits.max_model_len());
  if (spec.batch > static_cast<int64_t>(limits.max_num_seqs()))
    refuse(what, spec.batch, "a max_num_seqs of", limits.max_num_seqs());
  if (spec.batch > static_cast<int64_t>(limits.max_logits_rows()))
    refuse(what, spec.batch, "a max_logits_rows of", limits.max_logits_rows());
  if (int64_t{spec.batch} * spec.fresh > static_cast<int64_t>(limits.max_batched_tokens()))
    refuse(what, int64_t{spec.batch} * spec.fresh, "a max_batched_tokens of", limits.max_batched_tokens());
}

exec::Executor::StepDone StepRunner::on_done() {
  return [this](const exec::StepBatch &batch, const exec::LogitsView &logits, const std::string &error) {
    finish(batch, logits, error);
  };
}

// Appends the last `fresh` tokens of a sequence that has `context` of them, with random ids; its last row wants logits.
void StepRunner::add(exec::StepBatch &batch, int seq, int fresh, int context) {
  const int page_size = static_cast<int>(plan_.root().limits()->page_size());
  const int pages = (spec_.context + page_size - 1) / page_size;
  if (batch.seq_starts.empty())
    batch.seq_starts = batch.page_starts = {0};
  std::uniform_int_distribution<int32_t> id(0, static_cast<int32_t>(plan_.root().model()->vocab()) - 1);
  for (int position = context - fresh; position < context; ++position) {
    batch.ids.push_back(id(random_));
    batch.positions.push_back(position);
    batch.slot_mapping.push_back(int64_t{seq * pages + position / page_size} * page_size + position % page_size);
  }
  batch.seq_starts.push_back(static_cast<int32_t>(batch.ids.size()));
  batch.context_lens.push_back(context);
  for (int page = 0; page < (context + page_size - 1) / page_size; ++page)
    batch.pages.push_back(seq * pages + page);
  batch.page_starts.push_back(static_cast<int32_t>(batch.pages.size()));
  batch.logits_rows.push_back(static_cast<int32_t>(batch.ids.size()) - 1);
  if (executor_->samples())
    batch.sampling.push_back({true});
}

void StepRunner::prepare(exec::Executor &executor) {
  executor_ = &executor;
  const int64_t page_size = plan_.root().limits()->page_size();
  const int64_t pages = (spec_.context + page_size - 1) / page_size * spec_.batch;
  if (pages > executor.num_pages())
    throw Error(str(spec_.batch) + " sequences of " + str(spec_.context) + " tokens need " + str(pages) +
                " KV pages, but there are " + str(executor.num_pages()) + ": profile a smaller --batch or --context");
  const int most = static_cast<int>(plan_.root().limits()->max_batched_tokens());
  for (int seq = 0; seq < spec_.batch; ++seq)
    for (int context = 0, end = spec_.context - spec_.fresh; context < end;) {
      const int chunk = std::min(most, end - context);
      context += chunk;
      exec::StepBatch fill;
      add(fill, seq, chunk, context);
      submit(std::move(fill));
    }
  for (int seq = 0; seq < spec_.batch; ++seq)
    add(step_, seq, spec_.fresh, spec_.context);
}

StepTimes StepRunner::run(Recorder *recorder) {
  exec::StepBatch batch = step_;
  batch.observer = recorder;
  const StepTimes times = submit(std::move(batch));
  // Devices run ahead: the spans of two steps would mix on ranks that are behind.
  if (recorder && !recorder->wait(++observed_))
    throw Error("a rank did not end step " + std::to_string(times.id) + " within a minute of its result");
  return times;
}

StepTimes StepRunner::submit(exec::StepBatch batch) {
  StepTimes times;
  times.id = batch.id = ++last_id_;
  auto shared = std::make_shared<const exec::StepBatch>(std::move(batch));
  times.submitted_ns = steady_ns();
  executor_->submit(std::move(shared));
  std::unique_lock lock(mutex_);
  wait_for(times.id, lock);
  times.done_ns = done_ns_;
  return times;
}

void StepRunner::wait_for(uint64_t id, std::unique_lock<std::mutex> &lock) {
  changed_.wait(lock, [&] { return done_ >= id || !error_.empty(); });
  if (!error_.empty())
    throw Error("a step of the profile failed: " + error_);
}

// Steps that are the same write the same keys and values to the same places, in order on every rank.
double StepRunner::interval(int steps) {
  const int full = static_cast<int>(executor_->max_in_flight()); // steps until all stages have work
  {
    std::lock_guard lock(mutex_);
    ends_.clear();
  }
  for (int i = 0; i < steps + full; ++i) {
    exec::StepBatch batch = step_;
    batch.id = ++last_id_;
    executor_->submit(std::make_shared<const exec::StepBatch>(std::move(batch)));
  }
  std::unique_lock lock(mutex_);
  wait_for(last_id_, lock);
  return static_cast<double>(ends_.back() - ends_[static_cast<size_t>(full) - 1]) * 1e-9 / steps;
}

// On the output rank's thread. Where the executor drew no tokens they are drawn here, as the engine would.
void StepRunner::finish(const exec::StepBatch &batch, const exec::LogitsView &logits, const std::string &error) {
  std::string failed = error;
  if (failed.empty() && logits.data && !logits.tokens) {
    const exec::ObservedSpan span(batch.observer, batch.id, output_rank_, exec::kPhaseSampling);
    try {
      for (size_t row = 0; row < logits.rows; ++row)
        sample::Sampler(greedy(), 0, {}, {}).sample({logits.data + row * logits.vocab, logits.vocab}, scratch_);
    } catch (const std::exception &e) {
      failed = e.what();
    }
  }
  const int64_t now = steady_ns();
  std::lock_guard lock(mutex_);
  done_ = batch.id;
  done_ns_ = now;
  ends_.push_back(now);
  if (error_.empty())
    error_ = failed;
  changed_.notify_all();
}

} // namespace llmrt::tool
