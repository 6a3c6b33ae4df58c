// What a step that follows another stands for, written out: the whole batch that could be submitted in its place.
#pragma once

#include "runtime/exec/executor.h"

#include <cstddef>
#include <cstdint>

namespace llmrt::test {

// `before`: the step that `next` follows, whole.
inline exec::StepBatch written_out(exec::StepBatch before, const exec::StepBatch &next, uint32_t page_size) {
  exec::StepBatch b = std::move(before);
  b.id = next.id;
  b.observer = next.observer;
  const std::vector<int32_t> pages = std::move(b.pages), starts = std::move(b.page_starts);
  b.pages.clear();
  b.page_starts = {0};
  b.from_rows.resize(b.ids.size());
  auto given = next.new_pages.begin();
  for (size_t s = 0; s < b.context_lens.size(); ++s) {
    b.pages.insert(b.pages.end(), pages.begin() + starts[s], pages.begin() + starts[s + 1]);
    const auto position = static_cast<uint32_t>(b.context_lens[s]);
    if (given != next.new_pages.end() && given->seq == static_cast<int32_t>(s))
      b.pages.push_back((given++)->page);
    b.page_starts.push_back(static_cast<int32_t>(b.pages.size()));
    b.ids[s] = 0;
    b.from_rows[s] = static_cast<int32_t>(s);
    b.positions[s] = b.context_lens[s]++;
    b.slot_mapping[s] = int64_t{b.pages.back()} * page_size + position % page_size;
    ++b.sampling[s].counter;
  }
  return b;
}

} // namespace llmrt::test
