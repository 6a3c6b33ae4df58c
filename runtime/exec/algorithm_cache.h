// Keeps what a backend has found out by timing (which library algorithm is fastest for a shape) from one start to the next,
// in a small text file. Knows nothing of what the bytes mean; whoever reads them back has to check them.
//
//   llmrt algorithms 1
//   <context: device, driver and library versions>
//   <key>: <hex bytes>
//   ...
//   end <count> <XXH64 of all before this line>
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::exec {

using AlgorithmBytes = std::vector<uint8_t>;
using Algorithms = std::map<std::string, AlgorithmBytes>;

// Null for a text that is damaged, of another version of the format or for another context.
std::optional<Algorithms> parse_algorithms(std::string_view text, std::string_view context);
std::string format_algorithms(const Algorithms &algorithms, std::string_view context);

// $XDG_CACHE_HOME/llmrt, or ~/.cache/llmrt; empty where neither variable is set.
std::filesystem::path cache_folder();

// Thread-safe.
class AlgorithmCache {
public:
  // Reads the file of this context in `folder`; one that is not there or does not hold is as an empty one. `context` is one
  // line without line breaks.
  AlgorithmCache(std::filesystem::path folder, std::string context);
  // Writes what has not been written.
  ~AlgorithmCache();
  AlgorithmCache(const AlgorithmCache &) = delete;
  AlgorithmCache &operator=(const AlgorithmCache &) = delete;

  std::optional<AlgorithmBytes> find(const std::string &key) const;
  // Keeps it, and writes the file at most once a second. A file that cannot be written is said once, on stderr.
  void put(const std::string &key, AlgorithmBytes algorithm);

  const std::filesystem::path &file() const { return file_; }

private:
  void write();

  const std::string context_;
  std::filesystem::path folder_, file_;
  mutable std::mutex mutex_; // guards what follows
  Algorithms algorithms_;
  bool changed_ = false, failed_ = false;
  std::chrono::steady_clock::time_point written_;
};

} // namespace llmrt::exec
