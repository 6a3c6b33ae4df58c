// The pool's lists are intrusive: one record per page holds its place in the hash table and in the list of
// evictable pages, so every operation but hashing is a handful of stores.
#include "runtime/kv/page_pool.h"

#include "runtime/support/error.h"

#include <bit>
#include <cstring>
#include <limits>
#include <random>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llmrt::kv {

PagePool::PagePool(uint32_t num_pages, uint32_t page_size, bool prefix_cache)
    : num_pages_(num_pages), page_size_(page_size), prefix_cache_(prefix_cache) {
  if (num_pages == 0 || page_size == 0 ||
      num_pages > static_cast<uint32_t>(std::numeric_limits<int32_t>::max()))
    throw Error("the KV cache cannot have " + std::to_string(num_pages) + " pages of " +
                std::to_string(page_size) +
                " tokens; both must be at least 1 and the pages at most 2147483647");
  // A secret seed: nobody can choose prompts that all fall into one bucket.
  std::random_device random;
  hash_seed_ = (static_cast<uint64_t>(random()) << 32) | random();
  info_.resize(num_pages);
  free_.reserve(num_pages);
  for (uint32_t p = num_pages; p-- > 0;)
    free_.push_back(static_cast<int32_t>(p));
  if (prefix_cache) {
    buckets_.assign(std::bit_ceil(num_pages), -1);
    ids_.reset(new int32_t[static_cast<size_t>(num_pages) * page_size]); // left untouched until used
  }
}

uint32_t PagePool::bucket_of(uint64_t parent_uid, const int32_t *ids) const {
  uint64_t seed = hash_seed_ ^ (parent_uid * 0x9E3779B97F4A7C15ull);
  uint64_t hash = XXH3_64bits_withSeed(ids, page_size_ * sizeof(int32_t), seed);
  return static_cast<uint32_t>(hash & (buckets_.size() - 1));
}

void PagePool::link_newest(int32_t page) {
  Info &info = info_[page];
  info.older = newest_;
  info.newer = -1;
  (newest_ >= 0 ? info_[newest_].newer : oldest_) = page;
  newest_ = page;
  ++evictable_;
}

void PagePool::unlink(int32_t page) {
  Info &info = info_[page];
  (info.older >= 0 ? info_[info.older].newer : oldest_) = info.newer;
  (info.newer >= 0 ? info_[info.newer].older : newest_) = info.older;
  info.older = info.newer = -1;
  --evictable_;
}

void PagePool::forget(int32_t page) {
  Info &info = info_[page];
  int32_t *link = &buckets_[info.bucket];
  while (*link != page)
    link = &info_[*link].next_in_bucket;
  *link = info.next_in_bucket;
  info.next_in_bucket = -1;
  info.uid = 0;
  --cached_;
}

int32_t PagePool::allocate() {
  int32_t page;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else if (oldest_ >= 0) {
    page = oldest_;
    unlink(page);
    forget(page);
  } else {
    return -1;
  }
  info_[page].refs = 1;
  ++used_;
  return page;
}

void PagePool::retain(int32_t page) {
  if (info_[page].refs++ == 0) {
    unlink(page);
    ++used_;
  }
}

void PagePool::release(int32_t page) {
  Info &info = info_[page];
  if (info.refs == 0)
    throw Error("KV page " + std::to_string(page) + " was released more often than it was taken");
  if (--info.refs > 0)
    return;
  --used_;
  if (info.uid != 0)
    link_newest(page);
  else
    free_.push_back(page);
}

PrefixNode PagePool::find(PrefixNode parent, const int32_t *ids) const {
  return prefix_cache_ && alive(parent) ? find_in(bucket_of(parent.uid, ids), parent, ids) : PrefixNode{};
}

PrefixNode PagePool::find_in(uint32_t bucket, PrefixNode parent, const int32_t *ids) const {
  for (int32_t p = buckets_[bucket]; p >= 0; p = info_[p].next_in_bucket)
    if (info_[p].parent_uid == parent.uid && !std::memcmp(ids_of(p), ids, page_size_ * sizeof(int32_t)))
      return {p, info_[p].uid};
  return {};
}

PrefixNode PagePool::insert(PrefixNode parent, const int32_t *ids, int32_t page, uint64_t step) {
  if (!prefix_cache_ || !alive(parent))
    return {};
  const uint32_t bucket = bucket_of(parent.uid, ids);
  if (PrefixNode node = find_in(bucket, parent, ids); !node.is_root())
    return node;
  Info &info = info_[page];
  if (info.refs == 0 || info.uid != 0)
    throw Error("KV page " + std::to_string(page) + " cannot enter the prefix cache: it has " +
                std::to_string(info.refs) + " references and is " +
                (info.uid ? "in it already" : "not in it"));
  std::memcpy(ids_.get() + static_cast<size_t>(page) * page_size_, ids, page_size_ * sizeof(int32_t));
  info.uid = next_uid_++;
  info.parent_uid = parent.uid;
  info.step = step;
  info.bucket = bucket;
  info.next_in_bucket = buckets_[bucket];
  buckets_[bucket] = page;
  ++cached_;
  return {page, info.uid};
}

void PagePool::drop_cache() {
  while (oldest_ >= 0) {
    int32_t page = oldest_;
    unlink(page);
    forget(page);
    free_.push_back(page);
  }
}

void PagePool::check() const {
  auto fail = [](const std::string &what) { throw Error("KV page pool: " + what); };
  std::vector<char> seen(num_pages_, 0);
  for (int32_t p : free_) {
    if (seen[p]++)
      fail("page " + std::to_string(p) + " is free twice");
    if (info_[p].refs || info_[p].uid)
      fail("free page " + std::to_string(p) + " is referenced or cached");
  }
  uint32_t evictable = 0;
  int32_t before = -1;
  for (int32_t p = oldest_; p >= 0; before = p, p = info_[p].newer) {
    if (seen[p]++)
      fail("page " + std::to_string(p) + " is listed twice");
    if (info_[p].refs || !info_[p].uid || info_[p].older != before)
      fail("evictable page " + std::to_string(p) + " is referenced, not cached or badly linked");
    ++evictable;
  }
  if (before != newest_ || evictable != evictable_)
    fail("the list of evictable pages has " + std::to_string(evictable) + ", not " +
         std::to_string(evictable_));
  uint32_t referenced = 0, nodes = 0;
  for (uint32_t p = 0; p < num_pages_; ++p) {
    referenced += info_[p].refs > 0;
    nodes += info_[p].uid != 0;
    if (!seen[p] && !info_[p].refs)
      fail("page " + std::to_string(p) + " is lost");
  }
  uint32_t in_buckets = 0;
  for (size_t b = 0; b < buckets_.size(); ++b)
    for (int32_t p = buckets_[b]; p >= 0; p = info_[p].next_in_bucket, ++in_buckets)
      if (info_[p].bucket != b || !info_[p].uid)
        fail("page " + std::to_string(p) + " stands in a wrong bucket");
  if (referenced != used_ || nodes != cached_ || in_buckets != cached_ ||
      free_.size() + evictable + used_ != num_pages_)
    fail("counts disagree: " + std::to_string(used_) + " used, " + std::to_string(evictable) +
         " evictable, " + std::to_string(free_.size()) + " free of " + std::to_string(num_pages_));
}

} // namespace llmrt::kv
