// The page pool and page tables: exact accounting, prefix hits that are verified and never mixed, eviction
// order, and a long random run against a model that knows what every page should hold.
#include "runtime/kv/page_pool.h"
#include "runtime/kv/page_table.h"
#include "runtime/support/error.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

using namespace llmrt;
using namespace llmrt::kv;

namespace {

std::vector<int32_t> iota(int32_t first, size_t n) {
  std::vector<int32_t> ids(n);
  for (size_t i = 0; i < n; ++i)
    ids[i] = first + static_cast<int32_t>(i);
  return ids;
}

// Runs `ids` through the pool as one sequence would in step `step`; returns how many tokens came from the
// cache.
size_t run(PagePool &pool, PageTable &table, const std::vector<int32_t> &ids, uint64_t step) {
  PageTable::Match match;
  PageTable::match(pool, ids.data(), ids.size() - 1, step, match);
  table.adopt(pool, match);
  EXPECT_TRUE(table.grow(pool, ids.size()));
  table.enter(pool, ids.data(), ids.size(), step);
  return match.ready * pool.page_size();
}

TEST(PagePool, RefusesImpossibleSizes) {
  EXPECT_THROW(PagePool(0, 16, true), Error);
  EXPECT_THROW(PagePool(16, 0, true), Error);
  EXPECT_THROW(PagePool(0x80000000u, 16, true), Error);
}

TEST(PagePool, GivesEveryPageOnceAndThenNone) {
  PagePool pool(5, 4, true);
  std::set<int32_t> pages;
  for (int i = 0; i < 5; ++i)
    pages.insert(pool.allocate());
  EXPECT_EQ(pages.size(), 5u);
  EXPECT_EQ(*pages.begin(), 0);
  EXPECT_EQ(*pages.rbegin(), 4);
  EXPECT_EQ(pool.allocate(), -1);
  EXPECT_EQ(pool.available(), 0u);
  pool.check();
  for (int32_t p : pages)
    pool.release(p);
  EXPECT_EQ(pool.available(), 5u);
  EXPECT_THROW(pool.release(0), Error);
  pool.check();
}

TEST(PagePool, FindVerifiesParentAndIds) {
  PagePool pool(8, 2, true);
  const int32_t a[] = {1, 2}, b[] = {3, 4}, other[] = {1, 3};
  int32_t p0 = pool.allocate(), p1 = pool.allocate();
  PrefixNode na = pool.insert({}, a, p0, 7);
  PrefixNode nb = pool.insert(na, b, p1, 8);
  EXPECT_EQ(pool.find({}, a), na);
  EXPECT_EQ(pool.find(na, b), nb);
  EXPECT_TRUE(pool.find({}, b).is_root()); // the same ids under another parent are another prefix
  EXPECT_TRUE(pool.find(na, a).is_root());
  EXPECT_TRUE(pool.find({}, other).is_root());
  EXPECT_EQ(pool.written_by(nb), 8u);
}

TEST(PagePool, SecondCopyStaysPrivate) {
  PagePool pool(4, 2, true);
  const int32_t a[] = {1, 2};
  int32_t p0 = pool.allocate(), p1 = pool.allocate();
  PrefixNode first = pool.insert({}, a, p0, 1);
  EXPECT_EQ(pool.insert({}, a, p1, 1), first);
  EXPECT_EQ(pool.cached(), 1u);
  pool.release(p1);
  pool.release(p0);
  EXPECT_EQ(pool.cached(), 1u);
  pool.check();
}

TEST(PagePool, EvictsTheLeastRecentlyUsed) {
  PagePool pool(3, 1, true);
  int32_t ids[] = {10, 11, 12};
  int32_t pages[3];
  for (int i = 0; i < 3; ++i) {
    pages[i] = pool.allocate();
    pool.insert({}, &ids[i], pages[i], 1);
  }
  for (int i = 0; i < 3; ++i)
    pool.release(pages[i]);
  // A hit on the oldest makes it the newest.
  PrefixNode hit = pool.find({}, &ids[0]);
  pool.retain(hit.page);
  pool.release(hit.page);
  EXPECT_EQ(pool.allocate(), pages[1]);
  EXPECT_TRUE(pool.find({}, &ids[1]).is_root());
  EXPECT_EQ(pool.allocate(), pages[2]);
  EXPECT_EQ(pool.find({}, &ids[0]), hit);
  EXPECT_EQ(pool.allocate(), pages[0]);
  EXPECT_EQ(pool.allocate(), -1);
  EXPECT_EQ(pool.cached(), 0u);
  pool.check();
}

TEST(PagePool, AnEvictedParentDoesNotComeBackThroughItsPage) {
  PagePool pool(2, 1, true);
  const int32_t a = 1, b = 2, c = 3;
  int32_t p0 = pool.allocate(), p1 = pool.allocate();
  PrefixNode na = pool.insert({}, &a, p0, 1);
  PrefixNode nb = pool.insert(na, &b, p1, 1);
  pool.release(p0); // only the parent becomes evictable
  int32_t again = pool.allocate();
  EXPECT_EQ(again, p0);
  PrefixNode nc = pool.insert({}, &c, again, 2); // the page holds something else now
  EXPECT_TRUE(pool.find(na, &b).is_root());      // so a 1,2 prompt may not reach b through it
  EXPECT_TRUE(pool.find(nc, &b).is_root());
  EXPECT_TRUE(pool.insert(na, &c, p1, 2).is_root());
  EXPECT_TRUE(pool.alive(nb));
  pool.check();
}

TEST(PagePool, CacheOffNeverHits) {
  PagePool pool(4, 2, false);
  PageTable first, second;
  EXPECT_EQ(run(pool, first, iota(0, 5), 1), 0u);
  first.clear(pool);
  EXPECT_EQ(run(pool, second, iota(0, 5), 2), 0u);
  EXPECT_EQ(pool.cached(), 0u);
  pool.check();
}

TEST(PageTable, SharesFullPagesOnly) {
  PagePool pool(16, 4, true);
  PageTable first, second, third;
  auto ids = iota(100, 11);
  EXPECT_EQ(run(pool, first, ids, 1), 0u);
  EXPECT_EQ(pool.used(), 3u);
  EXPECT_EQ(run(pool, second, ids, 2), 8u);
  EXPECT_EQ(pool.used(), 4u); // two shared, one page of its own each
  EXPECT_EQ(first.pages()[0], second.pages()[0]);
  EXPECT_EQ(first.pages()[1], second.pages()[1]);
  EXPECT_NE(first.pages()[2], second.pages()[2]);
  auto forked = ids;
  forked[5] = 1;
  EXPECT_EQ(run(pool, third, forked, 3), 4u);
  for (PageTable *t : {&first, &second, &third})
    t->clear(pool);
  EXPECT_EQ(pool.used(), 0u);
  pool.check();
}

TEST(PageTable, PagesOfTheSameStepAreListedButNotReady) {
  PagePool pool(16, 4, true);
  PageTable first;
  auto ids = iota(0, 9);
  run(pool, first, ids, 5);
  PageTable::Match match;
  PageTable::match(pool, ids.data(), 9, 5, match);
  EXPECT_EQ(match.nodes.size(), 2u);
  EXPECT_EQ(match.ready, 0u);
  PageTable::match(pool, ids.data(), 9, 6, match);
  EXPECT_EQ(match.ready, 2u);
  PageTable::match(pool, ids.data(), 7, 6, match); // one token must be left to compute
  EXPECT_EQ(match.ready, 1u);
}

TEST(PageTable, GrowsAllOrNothing) {
  PagePool pool(4, 4, true);
  PageTable first, second;
  EXPECT_TRUE(first.grow(pool, 9));
  EXPECT_EQ(pool.available(), 1u);
  EXPECT_EQ(second.missing(pool, 8), 2u);
  EXPECT_FALSE(second.grow(pool, 8));
  EXPECT_TRUE(second.pages().empty());
  EXPECT_EQ(pool.available(), 1u);
  EXPECT_TRUE(second.grow(pool, 4));
  EXPECT_TRUE(second.grow(pool, 3));
  EXPECT_EQ(second.pages().size(), 1u);
  pool.check();
}

TEST(PageTable, TheCacheLosesTailsBeforeHeads) {
  PagePool pool(4, 2, true);
  PageTable first;
  auto ids = iota(0, 9); // four full pages and a token; the last page stays unfilled
  ids.resize(8);
  run(pool, first, ids, 1);
  first.clear(pool);
  PageTable second;
  EXPECT_TRUE(second.grow(pool, 4)); // takes two pages
  PageTable::Match match;
  PageTable::match(pool, ids.data(), 8, 2, match);
  EXPECT_EQ(match.ready, 2u);
}

// Sequences with heavily shared prefixes come, grow token by token, and go; each page's content is tracked
// aside.
TEST(PageTable, RandomRunKeepsContentsApart) {
  std::mt19937 rng(12345);
  for (uint32_t num_pages : {7u, 40u, 200u}) {
    const uint32_t page_size = 4;
    PagePool pool(num_pages, page_size, true);
    // content[page] = every id from the start of the sequence to the end of the page, as the KV values depend
    // on it.
    std::map<int32_t, std::vector<int32_t>> content;
    struct Sequence {
      std::vector<int32_t> ids;
      size_t computed = 0;
      PageTable table;
    };
    std::vector<std::unique_ptr<Sequence>> live;
    size_t hits = 0;
    for (uint64_t step = 1; step < 6000; ++step) {
      const unsigned what = rng() % 10;
      if (what < 3) {
        auto s = std::make_unique<Sequence>();
        for (size_t i = 0, n = 1 + rng() % 20; i < n; ++i)
          s->ids.push_back(static_cast<int32_t>(rng() % 2));
        PageTable::Match match;
        PageTable::match(pool, s->ids.data(), s->ids.size() - 1, step, match);
        s->table.adopt(pool, match);
        s->computed = match.ready * page_size;
        hits += match.ready;
        for (size_t i = 0; i < match.ready; ++i) {
          std::vector<int32_t> expected(s->ids.begin(), s->ids.begin() + (i + 1) * page_size);
          ASSERT_EQ(content[s->table.pages()[i]], expected);
        }
        if (s->table.grow(pool, s->ids.size()))
          live.push_back(std::move(s));
        else
          s->table.clear(pool);
      } else if (what < 4 && !live.empty()) {
        size_t at = rng() % live.size();
        live[at]->table.clear(pool);
        live.erase(live.begin() + at);
      } else if (!live.empty()) {
        Sequence &s = *live[rng() % live.size()];
        if (s.computed == s.ids.size())
          s.ids.push_back(static_cast<int32_t>(rng() % 2));
        if (!s.table.grow(pool, s.ids.size()))
          continue;
        size_t to = s.computed + 1 + rng() % (s.ids.size() - s.computed);
        for (size_t i = s.computed; i < to; ++i) { // "compute": the page now holds this history
          int32_t page = s.table.pages()[i / page_size];
          ASSERT_EQ(pool.references(page), 1u) << "a page with two holders is written";
          content[page].assign(s.ids.begin(), s.ids.begin() + i + 1);
        }
        s.computed = to;
        s.table.enter(pool, s.ids.data(), s.computed, step);
      }
      if (step % 50 == 0) {
        ASSERT_NO_THROW(pool.check());
      }
      for (auto &s : live)
        for (size_t i = 0; i < s->computed; i += page_size) {
          size_t end = std::min(s->computed, i + page_size);
          std::vector<int32_t> expected(s->ids.begin(), s->ids.begin() + end);
          ASSERT_EQ(content[s->table.pages()[i / page_size]], expected);
        }
    }
    EXPECT_GT(hits, 100u);
    for (auto &s : live)
      s->table.clear(pool);
    EXPECT_EQ(pool.used(), 0u);
    pool.drop_cache();
    EXPECT_EQ(pool.cached(), 0u);
    pool.check();
  }
}

} // namespace
