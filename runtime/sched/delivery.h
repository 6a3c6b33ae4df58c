// The thread that calls the requests' callbacks, and the queue it takes from. Steps leave a token as sixteen bytes; events, with
// all that they allocate, are made where nobody waits for them.
#pragma once

#include "runtime/exec/step_observer.h"
#include "runtime/sched/request.h"
#include "runtime/support/wait_word.h"

#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace llmrt::sched {

class Delivery {
public:
  struct Options {
    std::function<void(uint64_t id)> failed; // a request's callback has thrown, and is not called again
    std::function<void()> ended;             // requests have had their last events
  };
  // Both are called on the thread.
  explicit Delivery(Options options);
  // Delivers what was published, then ends.
  ~Delivery();

  // These three under the engine's lock, which also says in what order events come. A request's last event keeps it alive until
  // then; before that, the engine does. What throws, for want of memory, has added nothing.
  void add(Request &request, int32_t token);
  void add(Request &request, RequestEvent &&event);
  void add_last(RequestPtr request, RequestEvent &&event);
  // Hands on what was added, and tells `observer`, if any, how long the callbacks took.
  void publish(exec::StepObserver *observer = nullptr, uint64_t step = 0);
  // After publish(), best without the lock: it may be a system call.
  void wake() { published_.advance(); }

  // Whether all that was published has been delivered.
  bool idle() const;

private:
  struct Item {
    Request *request;
    int32_t token; // where there is no event
    int32_t event; // index into events; -1: none
  };
  struct Queue {
    std::vector<Item> items;
    std::vector<RequestEvent> events;
    std::vector<RequestPtr> ended; // whose last events are among them
    exec::StepObserver *observer = nullptr;
    uint64_t step = 0;
  };
  void run();
  void deliver(Queue &queue);
  void call(Request &request, RequestEvent &&event);

  const Options options_;
  Queue adding_; // under the engine's lock
  mutable std::mutex mutex_;
  Queue queue_;             // mutex_: published
  bool delivering_ = false; // mutex_
  WaitWord published_;
  std::thread thread_;
};

} // namespace llmrt::sched
