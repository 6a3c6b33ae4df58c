#include "runtime/support/end_watch.h"

#include <cstdio>
#include <cstdlib>

namespace llmrt {

EndWatch::~EndWatch() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

void EndWatch::arm(const std::string &why, std::chrono::milliseconds time) {
  if (thread_.joinable())
    return;
  thread_ = std::thread([this, why, time] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, time, [this] { return over_; }))
      return;
    std::fprintf(stderr, "llmrt: error: %s (and its devices did not let go within %lld ms: the process ends here)\n", why.c_str(),
                 static_cast<long long>(time.count()));
    std::fflush(nullptr);
    std::_Exit(EXIT_FAILURE); // no destructor of a library of the device's, which might wait as well
  });
}

} // namespace llmrt
