#include "runtime/exec/algorithm_cache.h"

#include "runtime/plan/hash.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>

namespace llmrt::exec {

namespace {

constexpr std::string_view kTitle = "llmrt algorithms 1";
constexpr size_t kMostFileBytes = 16 << 20, kMostBytes = 4096; // of the file, of an algorithm

// Up to the next line break, which is taken too. Null where there is none.
std::optional<std::string_view> take_line(std::string_view &text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos)
    return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

std::optional<AlgorithmBytes> from_hex(std::string_view text) {
  if (text.empty() || text.size() % 2 != 0 || text.size() > 2 * kMostBytes)
    return std::nullopt;
  AlgorithmBytes bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0)
      return std::nullopt;
    bytes.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  return bytes;
}

std::string end_line(size_t count, std::string_view before) {
  return "end " + std::to_string(count) + " " + plan::hash_hex(plan::hash_bytes(before.data(), before.size()));
}

// Empty where it is not there, cannot be read, or is larger than such a file can be.
std::string read_file(const std::filesystem::path &path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMostFileBytes)
    return {};
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<size_t>(size), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
  return text;
}

} // namespace

std::optional<Algorithms> parse_algorithms(std::string_view text, std::string_view context) {
  const std::string_view whole = text;
  if (take_line(text) != kTitle || take_line(text) != context)
    return std::nullopt;
  Algorithms algorithms;
  while (true) {
    const size_t before = static_cast<size_t>(text.data() - whole.data());
    const std::optional<std::string_view> line = take_line(text);
    if (!line)
      return std::nullopt;
    if (line->substr(0, 4) == "end ")
      return text.empty() && *line == end_line(algorithms.size(), whole.substr(0, before)) ? std::optional(std::move(algorithms))
                                                                                             : std::nullopt;
    const size_t colon = line->find(": ");
    if (colon == std::string_view::npos || colon == 0)
      return std::nullopt;
    std::optional<AlgorithmBytes> bytes = from_hex(line->substr(colon + 2));
    if (!bytes || !algorithms.emplace(line->substr(0, colon), std::move(*bytes)).second)
      return std::nullopt;
  }
}

std::string format_algorithms(const Algorithms &algorithms, std::string_view context) {
  std::string text = std::string(kTitle) + "\n" + std::string(context) + "\n";
  for (const auto &[key, bytes] : algorithms) {
    text += key + ": ";
    for (const uint8_t byte : bytes) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    text += "\n";
  }
  return text + end_line(algorithms.size(), text) + "\n";
}

std::filesystem::path cache_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') // others are to be ignored, says the XDG specification
    return std::filesystem::path(cache) / "llmrt";
  return home && *home ? std::filesystem::path(home) / ".cache" / "llmrt" : std::filesystem::path();
}

AlgorithmCache::AlgorithmCache(std::filesystem::path folder, std::string context)
    : context_(std::move(context)), folder_(std::move(folder)),
      file_(folder_ / ("algorithms-" + plan::hash_hex(plan::hash_bytes(context_.data(), context_.size())) + ".txt")) {
  if (auto algorithms = parse_algorithms(read_file(file_), context_))
    algorithms_ = std::move(*algorithms);
}

AlgorithmCache::~AlgorithmCache() {
  std::lock_guard lock(mutex_);
  if (changed_)
    write();
}

std::optional<AlgorithmBytes> AlgorithmCache::find(const std::string &key) const {
  std::lock_guard lock(mutex_);
  const auto at = algorithms_.find(key);
  return at == algorithms_.end() ? std::nullopt : std::optional(at->second);
}

void AlgorithmCache::put(const std::string &key, AlgorithmBytes algorithm) {
  std::lock_guard lock(mutex_);
  algorithms_[key] = std::move(algorithm);
  changed_ = true;
  if (std::chrono::steady_clock::now() - written_ >= std::chrono::seconds(1))
    write();
}

// Into a file beside, then over the old one in one motion: a reader sees the one or the other, whole. What another process has
// added meanwhile stays.
void AlgorithmCache::write() {
  if (auto others = parse_algorithms(read_file(file_), context_))
    algorithms_.merge(*others);
  const std::string text = format_algorithms(algorithms_, context_);
  const std::filesystem::path beside = file_.string() + "." + std::to_string(getpid());
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!error) {
    errno = 0;
    std::ofstream out(beside, std::ios::binary);
    if (!(out << text).flush())
      error = std::error_code(errno ? errno : EIO, std::generic_category());
    out.close();
    if (!error)
      std::filesystem::rename(beside, file_, error);
    if (error) {
      std::error_code ignored;
      std::filesystem::remove(beside, ignored);
    }
  }
  written_ = std::chrono::steady_clock::now();
  changed_ = static_cast<bool>(error);
  if (error && !failed_)
    std::fprintf(stderr, "llmrt: notice: the algorithms chosen cannot be kept in '%s' (%s) and will be timed again at the next start: "
                         "make it writable, or give --no-algorithm-cache\n",
                 file_.c_str(), error.message().c_str());
  failed_ = failed_ || error;
}

} // namespace llmrt::exec
