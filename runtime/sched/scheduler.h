// The scheduling policy: which requests run, which tokens of them make up the next step, and who gives way
// when the pages run out. It has no threads, locks, clocks or callbacks; the engine calls it under its lock.
//
// A step is filled in this order:
//   1. running requests that need one token (decode), the least recently served first;
//   2. running requests in the middle of their prompt, first come first served, in chunks of what is left of
//   the budget;
//   3. waiting requests, first come first served, as long as their whole prompt finds pages and a reserve of
//   free
//      pages stays for the running ones to grow into. A request whose prompt another one is writing in this
//      very step waits for the next, where it finds that work in the prefix cache.
// With m micro-batches in flight, a step takes at most 1/m of the running and 1/m of the waiting requests, so
// that the steps of the pipeline are of one size.
//
// Running ahead. Where the executor can take a step's input ids from what the step before it drew, a request is put
// into the next step while its token is still being drawn: `unknown` counts such tokens. A request that turns out to
// have ended has its row of that step dropped, and its pages are freed when that step returns, since it still writes
// to them; pages with unknown tokens do not enter the prefix cache. Not run ahead of: a request's last token by
// max_tokens, and steps with rows that the host reads: their requests cannot go on before it has, and would else get
// a token every other step.
//
// Following. Most steps of a running batch are the one before again, each request a token further. Where the executor takes it,
// only that is said (StepBatch::follows), with the pages that requests begin: what such a step costs hardly depends on how many
// requests it has, or how long they are. It is composed where the step before drew a token for each running request and is the only
// one in flight, and nobody can be admitted, ends or finds no page; all else is composed whole, which gives the same.
//
// When a running request needs a page and none is to be had, the youngest running request that is not in
// flight gives up its pages and goes back to the head of the queue; it later recomputes its tokens and goes
// on where it was. Only younger requests give way to older ones, and a request that would not fit the pool
// alone is never accepted: so the oldest one always gets on, and nothing deadlocks. While running ahead nearly all
// are in flight all the time; the youngest is then left out of a step, and gives way when it has returned.
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/kv/page_pool.h"
#include "runtime/sched/engine_model.h"
#include "runtime/sched/request.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace llmrt::sched {

// One request's share of a step. The scheduler keeps requests that are in flight.
struct StepWork {
  Request *request = nullptr;
  uint32_t start = 0;            // position of its first token in the step that it was made for
  uint32_t count = 0;            // its tokens in the step
  uint32_t first_logits_row = 0; // index into the step's logits
  uint32_t prompt_rows = 0;      // leading logits rows that score prompt tokens
  uint32_t prompt_row_pos = 0;   // position of the first of them; its logits score the token after it
  bool samples = false;          // the last logits row gives the next token
  bool completes = false;        // nothing is pending after this step
  bool drawn = false;            // the executor draws the next token itself

  bool read_by_host() const { return prompt_rows > 0 || (samples && !drawn); } // its rows of logits
};

class Scheduler {
public:
  // `micro_batches`: steps that may be in flight at once.
  Scheduler(const EngineModel &model, bool prefix_cache, unsigned micro_batches);

  // Lets the executor draw the tokens of requests that need nothing but temperature and filters.
  void draw_on_device() { draw_on_device_ = true; }
  // Lets a step take ids from the step in flight; with draw_on_device() and one micro-batch only.
  void run_ahead() { run_ahead_ = true; }
  // Lets steps follow others; with run_ahead() only.
  void follow() { follow_ = true; }

  void enqueue(RequestPtr request);

  // Fills `batch` (its id is set by the caller) and `work` with the next step and marks its requests in
  // flight. A step that follows has the work of the one before, and leaves `work` empty. False: nothing can run before a step
  // returns or a request comes.
  bool compose(exec::StepBatch &batch, std::vector<StepWork> &work);

  // The step is done with this work's request; the token that it drew, if any, is to be appended now.
  void returned(const StepWork &work);

  // Forgets a request that is not in flight and frees its pages. Returns its share in it, which may be the last.
  RequestPtr remove(Request &request);

  // Whether the host reads some row of the step composed last.
  bool host_reads() const { return host_reads_; }

  const std::vector<RequestPtr> &running() const { return running_; }
  const std::deque<RequestPtr> &waiting() const { return waiting_; }
  bool blocked_on_pages() const { return blocked_on_pages_; } // the last admission failed for want of pages
  const kv::PagePool &pool() const { return pool_; }

  uint64_t preemptions() const { return preemptions_; }
  uint64_t prefix_queries() const { return prefix_queries_; } // prompt tokens looked up
  uint64_t prefix_hits() const { return prefix_hits_; }       // of these, found

private:
  bool draw_on_device_ = false, run_ahead_ = false, follow_ = false;
  struct Room; // what is left of the step being composed

  bool compose_following(exec::StepBatch &batch);
  void serve_decodes(Room &room, size_t &seats);
  void serve_prefills(Room &room, size_t &seats);
  void admit(Room &room);
  bool can_run(const Request &request) const;
  bool place(Request &request, Room &room);
  bool find_page(Request &request, Room &room);
  void preempt(Request &victim);
  void free_pages(Request &request);
  void append(Request &request, uint32_t count, uint32_t prompt_rows, bool samples, Room &room);
  size_t reserve() const;

  const EngineModel model_;
  const unsigned micro_batches_;
  kv::PagePool pool_;
  std::vector<RequestPtr> running_;
  std::deque<RequestPtr> waiting_;
  std::vector<Request *> ready_; // of compose(): running requests that the step may carry
  kv::PageTable::Match match_;   // of admit()
  size_t carried_ = 0;       // requests in flight, counted once for each step
  uint64_t last_step_ = 0;   // composed
  size_t drawn_rows_ = 0;    // of that step, if each of its requests has one token and one row, which is drawn; else 0
  bool host_reads_ = false;  // some row of that step
  uint64_t admissions_ = 0;
  uint64_t preemptions_ = 0, prefix_queries_ = 0, prefix_hits_ = 0;
  bool blocked_on_pages_ = false;
};

} // namespace llmrt::sched
