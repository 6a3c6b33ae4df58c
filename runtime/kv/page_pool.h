// Which KV pages are in use, which hold a prefix worth keeping, and which may be taken. The pool deals in
// page numbers; the bytes live in the executor, where page p means the same tokens on every rank.
//
// Prefix cache. A full page may be entered as a node of a tree: its key is its parent node and its page_size
// token ids, so that a chain of nodes from the root spells the tokens of a prompt. The table is found by a
// hash, but a hit is always verified against the stored ids and the parent's unique number: equal hashes
// never mix two prompts. A node whose page nobody references stays until the page is needed; the least
// recently used goes first.
//
// Not thread-safe; its owner locks. After construction nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace llmrt::kv {

// A cached page. The uid is never used twice, so a node that was evicted is never mistaken for its successor.
struct PrefixNode {
  int32_t page = -1;
  uint64_t uid = 0;

  bool is_root() const { return uid == 0; }
  friend bool operator==(const PrefixNode &, const PrefixNode &) = default;
};

class PagePool {
public:
  // Throws llmrt::Error when a number is 0 or the pool has more than 2^31 - 1 pages.
  PagePool(uint32_t num_pages, uint32_t page_size, bool prefix_cache);

  // A page with one reference and unspecified content; evicts the least recently used cached page where no
  // other is free. -1: every page is referenced.
  int32_t allocate();
  // One more reference to a page that is referenced or cached.
  void retain(int32_t page);
  // One reference less. At none, a cached page becomes evictable (as the most recently used), any other free.
  // Release a sequence's pages last to first, so that the tail of a prefix goes before its head.
  void release(int32_t page);

  // The child of `parent` that holds these page_size ids, or the root if there is none. The page gets no
  // reference.
  PrefixNode find(PrefixNode parent, const int32_t *ids) const;
  // Enters a referenced page as the child of `parent` that holds these ids; `step` is the step that writes
  // it. Where the child exists already it is returned, and `page` stays private. Returns the root when the
  // cache is off or `parent` has been evicted: then nothing can be entered below it either.
  PrefixNode insert(PrefixNode parent, const int32_t *ids, int32_t page, uint64_t step);
  // The step given to insert().
  uint64_t written_by(PrefixNode node) const { return info_[node.page].step; }
  bool alive(PrefixNode node) const { return node.is_root() || info_[node.page].uid == node.uid; }

  // Forgets every cached page that is not referenced.
  void drop_cache();

  uint32_t total() const { return num_pages_; }
  uint32_t page_size() const { return page_size_; }
  uint32_t used() const { return used_; }                   // referenced pages
  uint32_t available() const { return num_pages_ - used_; } // free, or cached and evictable
  uint32_t cached() const { return cached_; }               // pages that are nodes, referenced or not
  uint32_t references(int32_t page) const { return info_[page].refs; }
  bool caches() const { return prefix_cache_; }

  // For tests: walks every list and table and throws llmrt::Error at the first contradiction.
  void check() const;

private:
  struct Info {
    uint64_t uid = 0; // 0: not a node
    uint64_t parent_uid = 0;
    uint64_t step = 0;
    uint32_t refs = 0;
    uint32_t bucket = 0;
    int32_t next_in_bucket = -1;
    int32_t older = -1, newer = -1; // neighbours in the list of evictable pages
  };

  uint32_t bucket_of(uint64_t parent_uid, const int32_t *ids) const;
  PrefixNode find_in(uint32_t bucket, PrefixNode parent, const int32_t *ids) const;
  const int32_t *ids_of(int32_t page) const { return ids_.get() + static_cast<size_t>(page) * page_size_; }
  void link_newest(int32_t page);
  void unlink(int32_t page);
  void forget(int32_t page); // out of the tree; the page itself is untouched

  uint32_t num_pages_, page_size_;
  bool prefix_cache_;
  uint64_t hash_seed_;
  uint64_t next_uid_ = 1;
  uint32_t used_ = 0, cached_ = 0, evictable_ = 0;
  int32_t oldest_ = -1, newest_ = -1;
  std::vector<Info> info_;
  std::vector<int32_t> free_;      // a stack
  std::vector<int32_t> buckets_;   // first page of each bucket, -1: none; a power of two of them
  std::unique_ptr<int32_t[]> ids_; // [num_pages, page_size]; only the rows of nodes mean anything
};

} // namespace llmrt::kv
