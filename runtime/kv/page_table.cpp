// Growth is all or nothing, and pages go back last to first so that the cache loses tails before heads.
#include "runtime/kv/page_table.h"

namespace llmrt::kv {

void PageTable::match(const PagePool &pool, const int32_t *ids, size_t n, uint64_t step, Match &out) {
  out.clear();
  PrefixNode node;
  for (size_t at = 0; at + pool.page_size() <= n; at += pool.page_size()) {
    node = pool.find(node, ids + at);
    if (node.is_root())
      return;
    // Nodes after one that is being written cannot be older than it in any useful way: readiness is a prefix.
    if (out.ready == out.nodes.size() && pool.written_by(node) < step)
      ++out.ready;
    out.nodes.push_back(node);
  }
}

void PageTable::adopt(PagePool &pool, const Match &match) {
  for (size_t i = 0; i < match.ready; ++i) {
    pool.retain(match.nodes[i].page);
    pages_.push_back(match.nodes[i].page);
  }
  entered_ = match.ready;
  tip_ = match.ready ? match.nodes[match.ready - 1] : PrefixNode{};
}

size_t PageTable::missing(const PagePool &pool, size_t tokens) const {
  size_t wanted = (tokens + pool.page_size() - 1) / pool.page_size();
  return wanted > pages_.size() ? wanted - pages_.size() : 0;
}

bool PageTable::grow(PagePool &pool, size_t tokens) {
  if (tokens <= pages_.size() * pool.page_size())
    return true;
  size_t more = missing(pool, tokens);
  if (more > pool.available())
    return false;
  for (; more > 0; --more)
    pages_.push_back(pool.allocate());
  return true;
}

void PageTable::enter(PagePool &pool, const int32_t *ids, size_t computed, uint64_t step) {
  if (!pool.caches())
    return;
  for (; (entered_ + 1) * pool.page_size() <= computed && !detached_; ++entered_) {
    PrefixNode node = pool.insert(tip_, ids + entered_ * pool.page_size(), pages_[entered_], step);
    detached_ = node.is_root();
    tip_ = node;
  }
}

void PageTable::clear(PagePool &pool) {
  for (size_t i = pages_.size(); i-- > 0;)
    pool.release(pages_[i]);
  pages_.clear();
  tip_ = {};
  entered_ = 0;
  detached_ = false;
}

} // namespace llmrt::kv
