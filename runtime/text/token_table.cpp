// Linear probing at a load of at most one half.
#include "runtime/text/token_table.h"

#include "runtime/support/error.h"

namespace llmrt::text {

void TokenTable::reserve(size_t tokens, size_t bytes) {
  arena_.reserve(bytes);
  by_id_.reserve(tokens);
  keys_.reserve(tokens);
}

std::string_view TokenTable::key(int32_t index) const {
  const Key &k = keys_[static_cast<size_t>(index)];
  return std::string_view(arena_).substr(k.offset, k.length);
}

size_t TokenTable::slot_of(std::string_view text) const {
  size_t mask = slots_.size() - 1;
  size_t slot = hash_bytes(text) & mask;
  while (slots_[slot] >= 0 && key(slots_[slot]) != text)
    slot = (slot + 1) & mask;
  return slot;
}

void TokenTable::grow() {
  slots_.assign(slots_.empty() ? 1024 : slots_.size() * 2, -1);
  for (size_t i = 0; i < keys_.size(); ++i)
    slots_[slot_of(key(static_cast<int32_t>(i)))] = static_cast<int32_t>(i);
}

void TokenTable::put(std::string_view text, int32_t id) {
  if (arena_.size() + text.size() > UINT32_MAX)
    throw Error("tokenizer.json: the tokens have more than 4 GiB of text.");
  if ((keys_.size() + 1) * 2 > slots_.size())
    grow();
  auto offset = static_cast<uint32_t>(arena_.size()), length = static_cast<uint32_t>(text.size());
  arena_ += text;
  size_t slot = slot_of(text);
  if (slots_[slot] >= 0) {
    keys_[static_cast<size_t>(slots_[slot])].id = id;
  } else {
    slots_[slot] = static_cast<int32_t>(keys_.size());
    keys_.push_back({offset, length, id});
  }
  auto index = static_cast<size_t>(id);
  if (index >= by_id_.size())
    by_id_.resize(index + 1);
  by_id_[index] = {offset, length, true};
}

std::optional<int32_t> TokenTable::find(std::string_view text) const {
  if (slots_.empty())
    return std::nullopt;
  int32_t index = slots_[slot_of(text)];
  if (index < 0)
    return std::nullopt;
  return keys_[static_cast<size_t>(index)].id;
}

bool TokenTable::contains(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < by_id_.size() && by_id_[static_cast<size_t>(id)].used;
}

std::string_view TokenTable::text(int32_t id) const {
  if (!contains(id))
    return {};
  const Entry &e = by_id_[static_cast<size_t>(id)];
  return std::string_view(arena_).substr(e.offset, e.length);
}

} // namespace llmrt::text
