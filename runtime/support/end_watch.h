// Ends the process where what has to end does not. Calls of CUDA and NCCL need not come back once a device hangs, or waits for
// one that has failed, and a process that failed has to end all the same.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace llmrt {

class EndWatch {
public:
  EndWatch() = default;
  ~EndWatch();
  EndWatch(const EndWatch &) = delete;
  EndWatch &operator=(const EndWatch &) = delete;

  // From here on this object has so long to be destroyed; else the process ends with status 1 and this sentence, `why` it was to
  // end, on stderr. Only the first call counts.
  void arm(const std::string &why, std::chrono::milliseconds time);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

} // namespace llmrt
