// The pages of one sequence, in order, and how far they have been entered into the prefix cache. Sequences
// share full pages only, so a page that is still being filled has exactly one writer; n > 1 completions of
// one prompt share its full pages the same way.
#pragma once

#include "runtime/kv/page_pool.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmrt::kv {

class PageTable {
public:
  const std::vector<int32_t> &pages() const { return pages_; }

  // The longest cached prefix of ids[0, n), in whole pages.
  struct Match {
    std::vector<PrefixNode> nodes;
    size_t ready = 0; // leading nodes written by a step before the one asked for
    void clear() {
      nodes.clear();
      ready = 0;
    }
  };
  // Fills `out`; nothing gets a reference. Nodes that `step` itself writes are listed but not ready.
  static void match(const PagePool &pool, const int32_t *ids, size_t n, uint64_t step, Match &out);

  // Takes the ready pages of a match as the start of this empty table.
  void adopt(PagePool &pool, const Match &match);

  // Makes the table cover `tokens`. False, and nothing changes, when too few pages are available.
  bool grow(PagePool &pool, size_t tokens);

  // Pages that grow() would take.
  size_t missing(const PagePool &pool, size_t tokens) const;

  // Enters the full pages of ids[0, computed) that are not entered yet; `step` writes them.
  void enter(PagePool &pool, const int32_t *ids, size_t computed, uint64_t step);

  // Gives every page back.
  void clear(PagePool &pool);

private:
  std::vector<int32_t> pages_;
  PrefixNode tip_;        // node of the last entered page
  size_t entered_ = 0;    // pages entered, or found to have an equal there
  bool detached_ = false; // an ancestor was evicted under a private copy: nothing more can be entered
};

} // namespace llmrt::kv
