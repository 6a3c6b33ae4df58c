// compose() reads as the order of service in scheduler.h; everything below it is one rule each.
#include "runtime/sched/scheduler.h"

#include "runtime/support/error.h"

#include <algorithm>
#include <utility>

namespace llmrt::sched {

// A deferred request lets others pass; so many are looked at before admission ends for this step.
static constexpr size_t kMaxPassed = 16;

struct Scheduler::Room {
  exec::StepBatch &batch;
  std::vector<StepWork> &work;
  uint32_t tokens;        // left of max_batched_tokens
  uint32_t rows;          // left of max_logits_rows
  bool preempted = false; // somebody gave way in this step: nobody is admitted
};

// So many requests ahead of the one that is looked at are asked for, and so many their lists.
static constexpr size_t kFetchAhead = 12, kFetchListsAhead = 6;

// Steady decoding finds everybody in order.
template <typename Less> static void sort_unless_sorted(std::vector<Request *> &requests, Less less) {
  if (!std::is_sorted(requests.begin(), requests.end(), less))
    std::sort(requests.begin(), requests.end(), less);
}

static size_t share(size_t n, unsigned parts) {
  return (n + parts - 1) / parts;
}

Scheduler::Scheduler(const EngineModel &model, bool prefix_cache, unsigned micro_batches)
    : model_(model), micro_batches_(std::max(1u, micro_batches)),
      pool_(model.num_pages, model.page_size, prefix_cache) {
  running_.reserve(model.max_num_seqs);
  ready_.reserve(model.max_num_seqs);
}

void Scheduler::enqueue(RequestPtr request) {
  waiting_.push_back(std::move(request));
}

void Scheduler::returned(const StepWork &work) {
  --work.request->in_flight;
  if (work.drawn)
    --work.request->unknown;
  --carried_;
}

// Whether the next step may carry a running request: one that is not in flight, or whose steps in flight leave
// nothing for the host to decide.
bool Scheduler::can_run(const Request &r) const {
  if (r.in_flight == 0)
    return true;
  return run_ahead_ && !r.over && !r.cancelled.load(std::memory_order_relaxed) && r.pending() > 0 &&
         (r.unknown == 0 || r.output_tokens() + r.unknown < r.max_tokens);
}

static void clear(exec::StepBatch &batch) {
  batch.ids.clear();
  batch.positions.clear();
  batch.seq_starts.clear();
  batch.context_lens.clear();
  batch.page_starts.clear();
  batch.pages.clear();
  batch.slot_mapping.clear();
  batch.logits_rows.clear();
  batch.sampling.clear();
  batch.from_rows.clear();
  batch.follows = 0;
  batch.new_pages.clear();
}

bool Scheduler::compose(exec::StepBatch &batch, std::vector<StepWork> &work) {
  clear(batch);
  work.clear();
  if (run_ahead_ && carried_ > 0 && host_reads_)
    return false;
  if (compose_following(batch))
    return true;
  batch.new_pages.clear();
  batch.seq_starts.push_back(0);
  batch.page_starts.push_back(0);
  Room room{batch, work, model_.max_batched_tokens, model_.max_logits_rows};

  ready_.clear();
  for (size_t i = 0; i < running_.size(); ++i) {
    if (i + kFetchAhead < running_.size())
      running_[i + kFetchAhead]->prefetch_compose();
    if (can_run(*running_[i]))
      ready_.push_back(running_[i].get());
  }
  sort_unless_sorted(ready_, [](const Request *a, const Request *b) {
    return a->last_step != b->last_step ? a->last_step < b->last_step : a->admission < b->admission;
  });
  size_t seats = share(running_.size(), micro_batches_);
  serve_decodes(room, seats);
  if (work.size() < ready_.size())
    serve_prefills(room, seats);
  if (!room.preempted)
    admit(room);
  ready_.clear();
  if (work.empty())
    return false;
  if (!batch.from_rows.empty())
    batch.from_rows.resize(batch.ids.size(), -1);
  carried_ += work.size();
  last_step_ = batch.id;
  const bool drawn = batch.ids.size() == work.size() && std::all_of(work.begin(), work.end(), [](const StepWork &w) { return w.drawn; });
  drawn_rows_ = drawn ? work.size() : 0;
  host_reads_ = std::any_of(work.begin(), work.end(), [](const StepWork &w) { return w.read_by_host(); });
  return true;
}

// Whatever it does for requests before it finds out that the step cannot follow, composing it whole does first, too.
bool Scheduler::compose_following(exec::StepBatch &batch) {
  if (!follow_ || drawn_rows_ == 0 || running_.size() != drawn_rows_ ||
      (!waiting_.empty() && running_.size() < model_.max_num_seqs))
    return false;
  for (uint32_t row = 0; row < drawn_rows_; ++row) {
    if (row + kFetchAhead < drawn_rows_)
      running_[row + kFetchAhead]->prefetch_results();
    const Request &r = *running_[row];
    const bool as_before = r.last_step == last_step_ && r.drawn_row == row && r.in_flight == 1 && r.unknown == 1 && r.pending() == 1;
    if (!as_before || r.gives_way == batch.id || !can_run(r))
      return false;
    if (r.computed % model_.page_size == 0)
      batch.new_pages.push_back({static_cast<int32_t>(row), -1});
  }
  for (exec::NewPage &next : batch.new_pages) {
    Request &r = *running_[static_cast<size_t>(next.seq)];
    if (!r.pages.grow(pool_, r.length()))
      return false;
    r.pages.enter(pool_, r.tokens.data(), r.tokens.size(), batch.id);
    next.page = r.pages.pages()[r.computed / model_.page_size];
  }
  for (const RequestPtr &r : running_) {
    ++r->computed;
    ++r->unknown;
    ++r->in_flight;
    r->last_step = batch.id;
  }
  blocked_on_pages_ = false;
  carried_ += drawn_rows_;
  batch.follows = std::exchange(last_step_, batch.id);
  return true;
}

void Scheduler::serve_decodes(Room &room, size_t &seats) {
  for (size_t i = 0; i < ready_.size(); ++i) {
    if (seats == 0 || room.tokens == 0 || room.rows == 0)
      return;
    if (i + kFetchListsAhead < ready_.size())
      ready_[i + kFetchListsAhead]->prefetch_pages();
    Request *const r = ready_[i];
    // Preempted earlier in this step: it waits now.
    if (r->admission == 0 || r->gives_way == room.batch.id || r->pending() != 1)
      continue;
    if (find_page(*r, room) && place(*r, room))
      --seats;
  }
}

void Scheduler::serve_prefills(Room &room, size_t &seats) {
  sort_unless_sorted(ready_, [](const Request *a, const Request *b) { return a->admission < b->admission; });
  for (Request *r : ready_) {
    if (seats == 0 || room.tokens == 0)
      return;
    if (r->admission == 0 || r->gives_way == room.batch.id || r->last_step == room.batch.id || r->pending() == 1)
      continue;
    if (place(*r, room))
      --seats;
  }
}

void Scheduler::admit(Room &room) {
  blocked_on_pages_ = false;
  const size_t slots = model_.max_num_seqs > running_.size() ? model_.max_num_seqs - running_.size() : 0;
  size_t seats = share(std::min(slots, waiting_.size()), micro_batches_);
  size_t at = 0;
  while (at < waiting_.size() && seats > 0 && room.tokens > 0 && room.rows > 0) {
    RequestPtr r = waiting_[at];
    const size_t n = r->tokens.size();
    match_.clear();
    if (pool_.caches() && !r->wants_prompt_logprobs) {
      kv::PageTable::match(pool_, r->tokens.data(), n - 1, room.batch.id, match_);
      const size_t soon = match_.nodes.size() - match_.ready, left = n - match_.ready * model_.page_size;
      if (2 * soon * model_.page_size >= left) {
        // Most of the work is being done by this very step.
        if (++at > kMaxPassed)
          return;
        continue;
      }
    }
    r->pages.adopt(pool_, match_);
    const size_t need = r->pages.missing(pool_, n);
    if (need + (running_.empty() ? 0 : reserve()) > pool_.available()) {
      r->pages.clear(pool_);
      blocked_on_pages_ = true;
      return;
    }
    r->pages.grow(pool_, n);
    r->computed = static_cast<uint32_t>(match_.ready * model_.page_size);
    if (!place(*r, room)) {
      r->pages.clear(pool_);
      r->computed = 0;
      return;
    }
    --seats;
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(at));
    running_.push_back(r);
    r->admission = ++admissions_;
    if (!r->was_admitted) {
      r->was_admitted = true;
      r->cached = static_cast<uint32_t>(match_.ready * model_.page_size);
      if (pool_.caches()) {
        prefix_queries_ += r->prompt_len;
        prefix_hits_ += r->cached;
      }
    }
  }
}

// Pages that stay free at an admission for those that run already: one each, but not more than a sixteenth of
// all.
size_t Scheduler::reserve() const {
  return std::max<size_t>(1, std::min<size_t>(running_.size(), model_.num_pages / 16));
}

// Puts as much of the request's pending tokens into the step as tokens and logits rows allow. False: nothing
// fits.
bool Scheduler::place(Request &r, Room &room) {
  uint32_t count = std::min(r.pending(), room.tokens);
  // Each prompt position but the last scores the token after it, unless that was done before a preemption.
  auto prompt_rows = [&](uint32_t n) -> uint32_t {
    if (!r.wants_prompt_logprobs)
      return 0;
    uint32_t begin = std::max(r.computed, r.prompt_logprobs_done), end = std::min(r.computed + n, r.prompt_len - 1);
    return end > begin ? end - begin : 0;
  };
  auto samples = [&](uint32_t n) { return n == r.pending() && r.max_tokens > 0; };
  // Too many rows: drop tokens from the end, each of which has at most one row.
  for (uint32_t rows; (rows = prompt_rows(count) + samples(count)) > room.rows;) {
    const uint32_t excess = rows - room.rows;
    if (excess >= count)
      return false;
    count -= excess;
  }
  if (count == 0)
    return false;
  append(r, count, prompt_rows(count), samples(count), room);
  return true;
}

// How the executor treats the rows of `w`: prompt rows are only read, the last one may be drawn.
static void add_draws(Request &r, StepWork &w, exec::StepBatch &b) {
  b.sampling.resize(b.logits_rows.size());
  if (!w.samples || !r.draw.draw)
    return;
  w.drawn = true;
  b.sampling.back() = r.draw;
  b.sampling.back().counter = r.output_tokens() + r.unknown;
  ++r.unknown;
  r.drawn_row = static_cast<uint32_t>(b.sampling.size()) - 1;
}

void Scheduler::append(Request &r, uint32_t count, uint32_t prompt_rows, bool samples, Room &room) {
  exec::StepBatch &b = room.batch;
  const uint32_t first_row = static_cast<uint32_t>(b.ids.size()), page_size = model_.page_size;
  const std::vector<int32_t> &pages = r.pages.pages();
  StepWork &w = room.work.emplace_back();
  w.request = &r;
  w.start = r.computed;
  w.count = count;
  w.first_logits_row = static_cast<uint32_t>(b.logits_rows.size());
  w.prompt_rows = prompt_rows;
  w.prompt_row_pos = std::max(r.computed, r.prompt_logprobs_done);
  w.samples = samples;
  uint32_t page = r.computed / page_size, in_page = r.computed % page_size;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t pos = r.computed + i;
    if (pos < r.tokens.size()) {
      b.ids.push_back(r.tokens[pos]);
    } else {
      if (r.last_step != last_step_ || r.unknown != 1)
        throw Error("a step wants a token that the step before it does not draw; this is a bug in llmrt");
      b.ids.push_back(0);
      b.from_rows.resize(b.ids.size(), -1);
      b.from_rows.back() = static_cast<int32_t>(r.drawn_row);
    }
    b.positions.push_back(static_cast<int32_t>(pos));
    b.slot_mapping.push_back(static_cast<int64_t>(pages[page]) * page_size + in_page);
    if (++in_page == page_size)
      in_page = 0, ++page;
  }
  for (uint32_t i = 0; i < prompt_rows; ++i)
    b.logits_rows.push_back(static_cast<int32_t>(first_row + (w.prompt_row_pos - w.start) + i));
  if (samples)
    b.logits_rows.push_back(static_cast<int32_t>(first_row + count - 1));
  r.computed += count;
  r.prompt_logprobs_done += prompt_rows;
  w.completes = r.pending() == 0;
  if (draw_on_device_)
    add_draws(r, w, b);
  b.seq_starts.push_back(static_cast<int32_t>(b.ids.size()));
  b.context_lens.push_back(static_cast<int32_t>(r.computed));
  const uint32_t covering = page + (in_page > 0);
  b.pages.insert(b.pages.end(), pages.begin(), pages.begin() + covering);
  b.page_starts.push_back(static_cast<int32_t>(b.pages.size()));
  // Every rank runs the steps in order, so a later step may read what this one writes.
  r.pages.enter(pool_, r.tokens.data(), std::min<size_t>(r.computed, r.tokens.size()), b.id);
  ++r.in_flight;
  r.last_step = b.id;
  room.tokens -= count;
  room.rows -= prompt_rows + samples;
}

// Makes room for the request's next token; younger requests give way. False: it has to wait for those in
// flight, or for older ones to end.
bool Scheduler::find_page(Request &r, Room &room) {
  while (!r.pages.grow(pool_, r.length())) {
    Request *victim = nullptr, *busy = nullptr;
    bool pages_return = false;
    for (const RequestPtr &other : running_) {
      if (other->in_flight && (other->over || other->cancelled.load(std::memory_order_relaxed) ||
                               other->gives_way == room.batch.id))
        pages_return = true;
      Request *&youngest = other->in_flight ? busy : victim;
      if (other->admission > r.admission && other->last_step != room.batch.id &&
          (!youngest || other->admission > youngest->admission))
        youngest = other.get();
    }
    if (!victim) {
      if (run_ahead_ && busy && !pages_return) {
        busy->gives_way = room.batch.id;
        room.preempted = true;
      }
      return false;
    }
    preempt(*victim);
    room.preempted = true;
  }
  return true;
}

// Pages that filled up while their last token was being drawn are known now, and may serve others.
void Scheduler::free_pages(Request &r) {
  if (r.computed > 0)
    r.pages.enter(pool_, r.tokens.data(), std::min<size_t>(r.computed, r.tokens.size()), r.last_step);
  r.pages.clear(pool_);
}

// Takes a request out of a list that holds it.
template <typename List> static RequestPtr extract(List &list, const Request &request) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const RequestPtr &r) { return r.get() == &request; });
  RequestPtr found = std::move(*at);
  list.erase(at);
  return found;
}

void Scheduler::preempt(Request &victim) {
  free_pages(victim);
  victim.computed = 0;
  victim.admission = 0;
  waiting_.push_front(extract(running_, victim));
  ++preemptions_;
}

RequestPtr Scheduler::remove(Request &request) {
  if (request.in_flight)
    throw Error("a request was removed while a step carries it");
  free_pages(request);
  return request.admission != 0 ? extract(running_, request) : extract(waiting_, request);
}

} // namespace llmrt::sched
