#include "test/unit/sched/fake_executor.h"

#include "runtime/sample/sampler.h"
#include "test/unit/exec/following.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

namespace llmrt::test {

uint64_t fake_mix(uint64_t a, uint64_t b) { // splitmix64 of both
  uint64_t z = a * 0x9E3779B97F4A7C15ull + b + 0x632BE59BD9B4E019ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

uint64_t fake_value(int32_t token, int64_t position) {
  return fake_mix(static_cast<uint64_t>(token), static_cast<uint64_t>(position));
}

void fake_logits(uint64_t context_sum, size_t vocab, float *out) {
  for (size_t i = 0; i < vocab; ++i)
    out[i] = static_cast<float>(fake_mix(context_sum, i) >> 40) * (6.0f / (1 << 24)) - 3.0f;
}

FakeExecutor::FakeExecutor(const EngineModel &model, const FakeOptions &options, std::shared_ptr<FakeLog> log,
                           StepDone on_done)
    : model_(model), options_(options), log_(std::move(log)), on_done_(std::move(on_done)),
      slots_(static_cast<size_t>(model.num_pages) * model.page_size), thread_([this] { run(); }) {}

FakeExecutor::~FakeExecutor() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void FakeExecutor::violation(const exec::StepBatch &batch, const std::string &what) {
  std::lock_guard lock(log_->mutex);
  if (log_->violations.size() < 20)
    log_->violations.push_back("step " + std::to_string(batch.id) + ": " + what);
}

void FakeExecutor::submit(std::shared_ptr<const exec::StepBatch> batch) {
  if (options_.throw_at_step && batch->id >= options_.throw_at_step)
    throw Error("the fake executor refuses step " + std::to_string(batch->id));
  std::unique_lock lock(mutex_);
  if (queue_.size() >= options_.depth)
    violation(*batch, "submitted while " + std::to_string(queue_.size()) + " steps were in flight");
  changed_.wait(lock, [this] { return queue_.size() < options_.depth; });
  batch = whole(std::move(batch));
  check(*batch);
  queue_.push_back(std::move(batch));
  {
    std::lock_guard log_lock(log_->mutex);
    log_->max_in_flight = std::max<uint64_t>(log_->max_in_flight, queue_.size());
  }
  changed_.notify_all();
}

bool FakeExecutor::accepts() const {
  std::lock_guard lock(mutex_);
  return !options_.blocks && queue_.size() < options_.depth;
}

// The batch, or what it stands for where it follows the one before. The rest is as with any other.
std::shared_ptr<const exec::StepBatch> FakeExecutor::whole(std::shared_ptr<const exec::StepBatch> batch) {
  if (batch->follows) {
    if (!options_.follows || !last_ || batch->follows != last_->id)
      throw Error("step " + std::to_string(batch->id) + " follows step " + std::to_string(batch->follows));
    batch = std::make_shared<const exec::StepBatch>(written_out(*last_, *batch, model_.page_size));
    std::lock_guard lock(log_->mutex);
    ++log_->followed;
  }
  if (options_.follows)
    last_ = batch;
  return batch;
}

// Called with the steps in flight in queue_.
void FakeExecutor::check(const exec::StepBatch &b) {
  auto fail = [&](const std::string &what) { violation(b, what); };
  const size_t T = b.ids.size(), S = b.context_lens.size(), R = b.logits_rows.size();
  if (b.id <= last_id_)
    fail("its id does not rise");
  last_id_ = b.id;
  if (T == 0 || S == 0)
    return fail("it is empty");
  if (T > model_.max_batched_tokens || S > model_.max_num_seqs || R > model_.max_logits_rows)
    fail("beyond the limits: " + std::to_string(T) + " tokens, " + std::to_string(S) + " sequences, " +
         std::to_string(R) + " rows");
  if (b.positions.size() != T || b.slot_mapping.size() != T || b.seq_starts.size() != S + 1 ||
      b.page_starts.size() != S + 1 || b.seq_starts.front() != 0 ||
      b.seq_starts.back() != static_cast<int32_t>(T) || b.page_starts.front() != 0 ||
      b.page_starts.back() != static_cast<int32_t>(b.pages.size()))
    return fail("its arrays do not match");
  for (size_t i = 0; i < R; ++i)
    if (b.logits_rows[i] < 0 || b.logits_rows[i] >= static_cast<int32_t>(T) ||
        (i && b.logits_rows[i] <= b.logits_rows[i - 1]))
      fail("logits rows are not ascending rows of the step");

  std::map<int32_t, size_t> writer; // page -> sequence of this step that writes it
  std::vector<std::set<int32_t>> tables(S);
  size_t decodes = 0;
  for (size_t s = 0; s < S; ++s) {
    const int32_t begin = b.seq_starts[s], end = b.seq_starts[s + 1], context = b.context_lens[s];
    if (end <= begin || context < end - begin) {
      fail("sequence " + std::to_string(s) + " has no tokens or too short a context");
      continue;
    }
    decodes += end - begin == 1;
    if (context > static_cast<int32_t>(model_.max_model_len))
      fail("a context of " + std::to_string(context) + " tokens");
    const int32_t *pages = b.pages.data() + b.page_starts[s];
    const size_t num_pages = static_cast<size_t>(b.page_starts[s + 1] - b.page_starts[s]);
    if (num_pages != (static_cast<size_t>(context) + model_.page_size - 1) / model_.page_size) {
      fail("sequence " + std::to_string(s) + " has " + std::to_string(num_pages) + " pages for " +
           std::to_string(context) + " tokens");
      continue;
    }
    for (size_t i = 0; i < num_pages; ++i)
      if (pages[i] < 0 || pages[i] >= static_cast<int32_t>(model_.num_pages) ||
          !tables[s].insert(pages[i]).second)
        return fail("page " + std::to_string(pages[i]) + " is out of range or twice in a table");
    for (int32_t t = begin; t < end; ++t) {
      const int32_t pos = context - (end - t);
      if (b.positions[t] != pos)
        fail("token " + std::to_string(t) + " is at position " + std::to_string(b.positions[t]) + ", not " +
             std::to_string(pos));
      const int32_t page = pages[static_cast<uint32_t>(pos) / model_.page_size];
      if (b.slot_mapping[t] !=
          static_cast<int64_t>(page) * model_.page_size + static_cast<uint32_t>(pos) % model_.page_size)
        fail("token " + std::to_string(t) + " goes to a slot that its page table does not name");
      if (auto [it, added] = writer.emplace(page, s); !added && it->second != s)
        fail("page " + std::to_string(page) + " has two writers");
      if (b.ids[t] < 0 || static_cast<size_t>(b.ids[t]) >= model_.vocab)
        fail("token id " + std::to_string(b.ids[t]));
    }
  }
  for (size_t s = 0; s < S; ++s)
    for (int32_t page : tables[s])
      if (auto it = writer.find(page); it != writer.end() && it->second != s)
        fail("page " + std::to_string(page) +
             " is written by one sequence and read by another of the same step");
  // Nothing that a step in flight reads or writes may be written by this one: it would be the same sequence
  // twice, or a page that was taken away from under its reader.
  for (const auto &earlier : queue_)
    for (int32_t page : earlier->pages)
      if (auto it = writer.find(page); it != writer.end() && !continues(*earlier, b, it->second, page))
        fail("page " + std::to_string(page) + " is written while step " + std::to_string(earlier->id) +
             " uses it");
  check_from_rows(b);
  std::lock_guard lock(log_->mutex);
  ++log_->steps;
  log_->tokens += T;
  log_->rows += R;
  log_->max_seqs = std::max<uint64_t>(log_->max_seqs, S);
  log_->mixed_steps += decodes > 0 && decodes < S;
}

// Whether the sequence that used the page in an earlier step in flight is this one, and goes on where that step ends.
bool FakeExecutor::continues(const exec::StepBatch &earlier, const exec::StepBatch &b, size_t seq,
                             int32_t page) const {
  if (!options_.ahead)
    return false;
  const int32_t first = b.context_lens[seq] - (b.seq_starts[seq + 1] - b.seq_starts[seq]);
  for (size_t s = 0; s < earlier.context_lens.size(); ++s) {
    const auto begin = earlier.pages.begin() + earlier.page_starts[s],
               end = earlier.pages.begin() + earlier.page_starts[s + 1];
    if (std::find(begin, end, page) == end)
      continue;
    if (earlier.context_lens[s] != first ||
        !std::equal(begin, end, b.pages.begin() + b.page_starts[seq]))
      return false;
  }
  return true;
}

void FakeExecutor::check_from_rows(const exec::StepBatch &b) {
  if (!b.from_rows.empty() && (!options_.ahead || b.from_rows.size() != b.ids.size()))
    violation(b, "from_rows does not fit");
  bool any = false;
  for (size_t t = 0; t < b.from_rows.size(); ++t) {
    const int32_t from = b.from_rows[t];
    if (from < 0)
      continue;
    any = true;
    if (static_cast<size_t>(from) >= last_sampling_.size() || !last_sampling_[static_cast<size_t>(from)].draw ||
        b.ids[t] != 0)
      violation(b, "token " + std::to_string(t) + " comes from row " + std::to_string(from) +
                       ", which the step before does not draw");
  }
  last_sampling_ = b.sampling;
  if (!b.sampling.empty() && (!options_.samples || b.sampling.size() != b.logits_rows.size()))
    violation(b, "sampling does not fit");
  std::lock_guard lock(log_->mutex);
  log_->ahead_steps += any;
  for (const exec::RowSampling &row : b.sampling)
    log_->drawn += row.draw;
}

// The host's sampler at the row's counter, so that fake_generate() gives the answer for both.
void FakeExecutor::draw(const exec::StepBatch &b, std::vector<float> &logits) {
  tokens_.assign(b.sampling.size(), -7);
  sample::Scratch scratch;
  for (size_t r = 0; r < b.sampling.size(); ++r) {
    const exec::RowSampling &row = b.sampling[r];
    if (!row.draw)
      continue;
    SamplingParams params;
    params.temperature = row.temperature, params.top_p = row.top_p, params.min_p = row.min_p;
    params.top_k = row.top_k;
    sample::Sampler sampler(params, row.seed, {}, {});
    for (uint64_t i = 0; i < row.counter; ++i)
      sampler.accept(0);
    const std::span<float> values(logits.data() + r * model_.vocab, model_.vocab);
    tokens_[r] = std::isnan(values[0]) ? -1 : sampler.sample(values, scratch);
    std::fill(values.begin(), values.end(), 1e9f); // not the host's to read
  }
}

void FakeExecutor::execute(const exec::StepBatch &b, std::vector<float> &logits) {
  logits.assign(b.logits_rows.size() * model_.vocab, 0);
  for (size_t t = 0; t < b.ids.size(); ++t) {
    const int32_t from = b.from_rows.empty() ? -1 : b.from_rows[t];
    slots_[static_cast<size_t>(b.slot_mapping[t])] = {from < 0 ? b.ids[t] : tokens_.at(static_cast<size_t>(from)),
                                                      b.positions[t]};
  }
  size_t r = 0;
  for (size_t s = 0; s < b.context_lens.size(); ++s) {
    const int32_t *pages = b.pages.data() + b.page_starts[s];
    const int32_t first = b.context_lens[s] - (b.seq_starts[s + 1] - b.seq_starts[s]);
    uint64_t sum = 0;
    for (int32_t pos = 0; pos < b.context_lens[s]; ++pos) {
      const Slot &slot = slots_[static_cast<size_t>(pages[static_cast<uint32_t>(pos) / model_.page_size]) *
                                    model_.page_size +
                                static_cast<uint32_t>(pos) % model_.page_size];
      if (slot.position != pos)
        violation(b, "position " + std::to_string(pos) + " of sequence " + std::to_string(s) +
                         " holds position " + std::to_string(slot.position));
      sum += fake_value(slot.token, slot.position);
      if (pos < first)
        continue;
      const int32_t row = b.seq_starts[s] + pos - first;
      if (r < b.logits_rows.size() && b.logits_rows[r] == row) {
        float *out = logits.data() + r++ * model_.vocab;
        if (slot.token == options_.nan_after_token)
          std::fill_n(out, model_.vocab, std::numeric_limits<float>::quiet_NaN());
        else
          fake_logits(sum, model_.vocab, out);
      }
    }
  }
  if (r != b.logits_rows.size())
    violation(b, "a logits row was not reached");
}

// Executes the steps in order and reports them in order. Running ahead it may execute a step before the one in front of
// it is reported, as a device does that has both queued.
void FakeExecutor::run() {
  std::deque<Executed> executed; // not reported yet
  std::mt19937 rng(1);
  for (;;) {
    std::shared_ptr<const exec::StepBatch> next;
    {
      std::unique_lock lock(mutex_);
      auto more = [&] { return stop_ || queue_.size() > executed.size(); };
      if (executed.empty())
        changed_.wait(lock, more);
      else if (options_.ahead)
        changed_.wait_for(lock, std::chrono::microseconds(options_.patience_us ? options_.patience_us : rng() % 200), more);
      if (queue_.empty())
        return;
      if (queue_.size() > executed.size() && (executed.empty() || options_.ahead))
        next = queue_[executed.size()];
    }
    if (next) {
      while (options_.gate && !options_.gate->load())
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (options_.max_delay_us)
        std::this_thread::sleep_for(std::chrono::microseconds(rng() % options_.max_delay_us));
      executed.push_back({next, {}, {}, options_.fail_at_step && next->id >= options_.fail_at_step});
      if (!executed.back().failed) {
        execute(*next, executed.back().logits);
        draw(*next, executed.back().logits);
        executed.back().tokens = tokens_;
      }
      if (options_.ahead && executed.size() == 1)
        continue;
    }
    report(executed.front());
    executed.pop_front();
  }
}

void FakeExecutor::report(Executed &step) {
  if (step.failed)
    on_done_(*step.batch, {}, "the fake executor broke at step " + std::to_string(options_.fail_at_step));
  // The engine may submit the next step as soon as this one's results stand.
  {
    std::lock_guard lock(mutex_);
    queue_.pop_front();
    changed_.notify_all();
  }
  if (step.failed)
    return;
  on_done_(*step.batch,
           {step.logits.data(), step.batch->logits_rows.size(), model_.vocab,
            step.tokens.empty() ? nullptr : step.tokens.data()},
           "");
  std::fill(step.logits.begin(), step.logits.end(), 1e9f); // what a late reader would see
}

FakeAnswer fake_generate(const EngineModel &model, const std::vector<int32_t> &prompt,
                         const SamplingParams &sampling) {
  FakeAnswer answer;
  std::vector<int32_t> ends = sampling.stop_token_ids;
  if (!sampling.ignore_eos)
    ends.insert(ends.end(), model.eos_token_ids.begin(), model.eos_token_ids.end());
  sample::Sampler sampler(sampling, sampling.seed.value_or(0), prompt, ends);
  sample::Scratch scratch;
  uint64_t sum = 0;
  for (size_t i = 0; i < prompt.size(); ++i)
    sum += fake_value(prompt[i], static_cast<int64_t>(i));
  std::vector<float> logits(model.vocab);
  while (answer.tokens.size() < sampling.max_tokens) {
    fake_logits(sum, model.vocab, logits.data());
    const int32_t id = sampler.sample(logits, scratch);
    if (std::find(ends.begin(), ends.end(), id) != ends.end()) {
      answer.finish = FinishReason::Stop;
      answer.stop_token = id;
      return answer;
    }
    sampler.accept(id);
    sum += fake_value(id, static_cast<int64_t>(prompt.size() + answer.tokens.size()));
    answer.tokens.push_back(id);
  }
  return answer;
}

} // namespace llmrt::test
