// Strings by id and ids by string, for the vocabulary: one arena, one open-addressed index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::text {

// A fast hash for short keys; not for persistence.
inline uint64_t hash_bytes(std::string_view s) {
  constexpr uint64_t kMul = 0x9E3779B97F4A7C15ull;
  uint64_t h = s.size() * kMul;
  const char *p = s.data();
  size_t n = s.size();
  auto mix = [&](uint64_t word) {
    __uint128_t product = static_cast<__uint128_t>(h ^ word) * 0xD6E8FEB86659FD93ull;
    h = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    __builtin_memcpy(&word, p, 8);
    mix(word + kMul);
  }
  uint64_t tail = n; // keeps a tail of zeros apart from no tail
  for (size_t i = 0; i < n; ++i)
    tail = (tail << 8) | static_cast<unsigned char>(p[i]);
  mix(tail);
  return h;
}

class TokenTable {
public:
  void reserve(size_t tokens, size_t bytes);

  // Gives `text` this id. An id or a text that is already there is taken over by the later call, as in a
  // JSON object with a repeated key.
  void put(std::string_view text, int32_t id);

  std::optional<int32_t> find(std::string_view text) const;
  bool contains(int32_t id) const;
  std::string_view text(int32_t id) const;          // "" if there is none
  size_t size() const { return keys_.size(); }      // different texts
  size_t id_limit() const { return by_id_.size(); } // one more than the largest id

private:
  struct Entry {
    uint32_t offset = 0, length = 0;
    bool used = false;
  };
  void grow();
  size_t slot_of(std::string_view text) const;
  std::string_view key(int32_t index) const;

  struct Key {
    uint32_t offset, length;
    int32_t id;
  };
  std::string arena_;
  std::vector<Entry> by_id_;
  std::vector<Key> keys_;
  std::vector<int32_t> slots_; // index into keys_, -1: empty
};

} // namespace llmrt::text
