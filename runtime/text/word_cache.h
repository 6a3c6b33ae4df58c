// A bounded, direct-mapped cache from short words to their tokens. It never allocates after its first
// use and a collision simply replaces the older word. Not thread-safe: each concurrent encode() owns one.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace llmrt::text {

class WordCache {
public:
  static constexpr size_t kMaxKey = 26, kMaxIds = 7, kEntries = 1 << 14; // 1 MiB

  WordCache() : entries_(std::make_unique<Entry[]>(kEntries)) {}

  // Appends the word's tokens to `out` and returns true if the word is known.
  bool find(std::string_view word, uint64_t hash, std::vector<int32_t> &out) const {
    const Entry &e = entries_[hash % kEntries];
    if (e.key_length != word.size() || word.empty() || std::memcmp(e.key, word.data(), word.size()) != 0)
      return false;
    out.insert(out.end(), e.ids, e.ids + e.id_count);
    return true;
  }

  // Does nothing for a word or a token list that does not fit.
  void put(std::string_view word, uint64_t hash, const int32_t *ids, size_t count) {
    if (word.size() > kMaxKey || count > kMaxIds)
      return;
    Entry &e = entries_[hash % kEntries];
    e.key_length = static_cast<uint8_t>(word.size());
    e.id_count = static_cast<uint8_t>(count);
    std::memcpy(e.key, word.data(), word.size());
    std::memcpy(e.ids, ids, count * sizeof(int32_t));
  }

private:
  struct Entry {
    uint8_t key_length = 0, id_count = 0;
    char key[kMaxKey];
    int32_t ids[kMaxIds];
  };
  std::unique_ptr<Entry[]> entries_;
};

} // namespace llmrt::text
