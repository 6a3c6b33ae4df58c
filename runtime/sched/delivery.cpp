#include "runtime/sched/delivery.h"

#include "runtime/support/seconds.h"

#include <algorithm>
#include <chrono>

namespace llmrt::sched {

Delivery::Delivery(Options options) : options_(std::move(options)), thread_([this] { run(); }) {}

Delivery::~Delivery() {
  published_.close();
  thread_.join();
}

void Delivery::add(Request &request, int32_t token) { adding_.items.push_back({&request, token, -1}); }

namespace {

// Makes room for `more`, growing as push_back() does.
template <typename T> void make_room(std::vector<T> &v, size_t more) {
  if (v.capacity() - v.size() < more)
    v.reserve(std::max(v.size() + more, v.capacity() * 2));
}

} // namespace

void Delivery::add(Request &request, RequestEvent &&event) {
  make_room(adding_.events, 1);
  adding_.items.push_back({&request, 0, static_cast<int32_t>(adding_.events.size())});
  adding_.events.push_back(std::move(event));
}

void Delivery::add_last(RequestPtr request, RequestEvent &&event) {
  make_room(adding_.ended, 1);
  add(*request, std::move(event));
  adding_.ended.push_back(std::move(request));
}

void Delivery::publish(exec::StepObserver *observer, uint64_t step) {
  if (adding_.items.empty())
    return;
  std::lock_guard lock(mutex_);
  if (observer)
    queue_.observer = observer, queue_.step = step;
  if (queue_.items.empty()) {
    queue_.items.swap(adding_.items);
    queue_.events.swap(adding_.events);
    queue_.ended.swap(adding_.ended);
    return;
  }
  make_room(queue_.items, adding_.items.size());
  make_room(queue_.events, adding_.events.size());
  make_room(queue_.ended, adding_.ended.size());
  const int32_t first = static_cast<int32_t>(queue_.events.size());
  for (Item item : adding_.items) {
    item.event += item.event < 0 ? 0 : first;
    queue_.items.push_back(item);
  }
  std::move(adding_.events.begin(), adding_.events.end(), std::back_inserter(queue_.events));
  std::move(adding_.ended.begin(), adding_.ended.end(), std::back_inserter(queue_.ended));
  adding_.items.clear();
  adding_.events.clear();
  adding_.ended.clear();
}

bool Delivery::idle() const {
  std::lock_guard lock(mutex_);
  return queue_.items.empty() && !delivering_;
}

void Delivery::run() {
  Queue taken;
  for (;;) {
    const uint32_t seen = published_.load();
    {
      std::lock_guard lock(mutex_);
      std::swap(taken, queue_);
      delivering_ = !taken.items.empty();
    }
    if (!taken.items.empty()) {
      deliver(taken);
    } else if (WaitWord::is_closed(seen)) {
      return;
    } else {
      published_.wait(seen, {}, std::chrono::hours(1));
    }
  }
}

void Delivery::deliver(Queue &queue) {
  const auto start = std::chrono::steady_clock::now();
  for (const Item &item : queue.items) {
    if (item.event >= 0) {
      call(*item.request, std::move(queue.events[static_cast<size_t>(item.event)]));
      continue;
    }
    RequestEvent event;
    event.tokens.push_back({item.token, std::nullopt});
    event.cached_tokens = item.request->cached;
    call(*item.request, std::move(event));
  }
  if (queue.observer)
    queue.observer->engine_worked(queue.step, exec::EngineWork::Deliver, seconds_since(start));
  const bool ended = !queue.ended.empty();
  queue.items.clear();
  queue.events.clear();
  queue.ended.clear();
  queue.observer = nullptr;
  if (!ended)
    return; // what follows next time clears delivering_: no request has ended, so nobody finds the engine idle
  {
    std::lock_guard lock(mutex_);
    delivering_ = false;
  }
  options_.ended();
}

void Delivery::call(Request &request, RequestEvent &&event) {
  if (!request.on_event)
    return;
  const bool last = event.finish.has_value();
  try {
    request.on_event(std::move(event));
    if (last)
      request.on_event = nullptr;
  } catch (...) {
    // Its owner cannot follow it any more: stop working for it.
    request.on_event = nullptr;
    options_.failed(request.id);
  }
}

} // namespace llmrt::sched
