// The checks of a step: the good one passes, and each way to spoil it is refused with a sentence that names it.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/exec/step.h"
#include "runtime/support/error.h"
#include "test/unit/exec/small_step.h"

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::test;

namespace {

StepLimits limits() { return small_limits(); }
StepBatch good() { return small_step(); }

TEST(StepChecks, TheGoodStepPasses) {
  EXPECT_NO_THROW(validate(limits(), good()));
  StepBatch silent = good();
  silent.logits_rows.clear();
  EXPECT_NO_THROW(validate(limits(), silent));
}

TEST(StepChecks, EachWayToSpoilAStepIsRefused) {
  struct Case {
    std::function<void(StepBatch &)> spoil;
    std::string says;
  };
  const std::vector<Case> cases = {
      {[](StepBatch &b) { b = StepBatch{}; }, "0 tokens in 0 sequences"},
      {[](StepBatch &b) { b.ids[1] = 100; }, "token id 100, outside the vocabulary of 100"},
      {[](StepBatch &b) { b.ids[1] = -1; }, "token id -1"},
      {[](StepBatch &b) { b.ids.push_back(1); }, "positions has 4 entries where 5 belong"},
      {[](StepBatch &b) { b.ids.assign(9, 1); }, "its tokens are 9, more than the plan's max_batched_tokens of 8"},
      {[](StepBatch &b) { b.context_lens.assign(4, 1); }, "its sequences are 4"},
      {[](StepBatch &b) { b.logits_rows.assign(5, 1); }, "rows of logits are 5"},
      {[](StepBatch &b) { b.positions[0] = 3; }, "row 0 of sequence 0 is at position 3"},
      {[](StepBatch &b) { b.seq_starts[1] = 0; }, "seq_starts[1] is 0 after 0"},
      {[](StepBatch &b) { b.seq_starts[2] = 3; }, "seq_starts runs from 0 to 3"},
      {[](StepBatch &b) { b.seq_starts[0] = 1; }, "seq_starts runs from 1"},
      {[](StepBatch &b) { b.seq_starts = {0, 4}; }, "seq_starts has 2 entries where 3 belong"},
      {[](StepBatch &b) { b.seq_starts = {0, 9, 4}; }, "seq_starts[2] is 4 after 9"},
      {[](StepBatch &b) { b.context_lens[0] = 2; }, "context of 2 tokens"},
      {[](StepBatch &b) { b.context_lens[1] = 65; }, "max_model_len of 64"},
      {[](StepBatch &b) { b.page_starts = {0, 1, 5}; }, "has 1 pages, but its context of 7 tokens needs 2 of 4"},
      {[](StepBatch &b) { b.page_starts = {0, 6, 5}; }, "page_starts[2] is 5 after 6"},
      {[](StepBatch &b) { b.page_starts[2] = 4; }, "page_starts runs from 0 to 4 where it must run from 0 to 5"},
      {[](StepBatch &b) { b.pages.resize(20), b.page_starts[2] = 20; },
       "sequence 1 has 18 pages, more than the 16 of 4 tokens that the plan's max_model_len of 64 can fill"},
      {[](StepBatch &b) { b.pages[1] = 20; }, "page 20, and there are 20"},
      {[](StepBatch &b) { b.pages[1] = -1; }, "page -1"},
      {[](StepBatch &b) { b.slot_mapping[3] += 1; }, "row 3 of sequence 1 writes slot 22"},
      {[](StepBatch &b) { b.slot_mapping.pop_back(); }, "slot_mapping has 3 entries"},
      {[](StepBatch &b) { b.logits_rows = {3, 2}; }, "logits_rows[1] is 2"},
      {[](StepBatch &b) { b.logits_rows = {2, 2}; }, "logits_rows[1] is 2"},
      {[](StepBatch &b) { b.logits_rows = {4}; }, "logits_rows[0] is 4"},
      {[](StepBatch &b) { b.logits_rows = {-1}; }, "logits_rows[0] is -1"},
  };
  for (const Case &wrong : cases) {
    StepBatch batch = good();
    wrong.spoil(batch);
    try {
      validate(limits(), batch);
      ADD_FAILURE() << "accepted: " << wrong.says;
    } catch (const Error &e) {
      EXPECT_NE(std::string(e.what()).find(wrong.says), std::string::npos) << e.what() << "\nlacks: " << wrong.says;
    }
  }
}

// Two sequences that a token is drawn for: at positions 6 and 7, so that the second begins a page next.
StepBatch drawn() {
  StepBatch batch;
  batch.id = 7;
  batch.ids = {1, 2};
  batch.positions = {6, 7};
  batch.seq_starts = {0, 1, 2};
  batch.context_lens = {7, 8};
  batch.page_starts = {0, 2, 4};
  batch.pages = {11, 3, 0, 19};
  batch.slot_mapping = {3 * 4 + 2, 19 * 4 + 3};
  batch.logits_rows = {0, 1};
  batch.sampling.assign(2, RowSampling{.draw = true});
  return batch;
}

StepBatch following(uint64_t step, std::vector<NewPage> pages) {
  StepBatch batch;
  batch.id = step + 1;
  batch.follows = step;
  batch.new_pages = std::move(pages);
  return batch;
}

std::string refusal(const FollowedStep &followed, const StepBatch &batch) {
  try {
    followed.validate(limits(), batch);
  } catch (const Error &e) {
    return e.what();
  }
  return "";
}

TEST(StepsThatFollow, EachNewPageHasItsStep) {
  validate(limits(), drawn());
  FollowedStep last;
  last.set(drawn());
  const std::vector<std::vector<NewPage>> pages = {{{1, 4}}, {{0, 6}}, {}, {}, {{1, 19}}, {{0, 0}}};
  for (uint64_t step = 0; step < pages.size(); ++step) {
    const StepBatch next = following(7 + step, pages[step]);
    EXPECT_EQ(refusal(last, next), "");
    last.advance(next);
  }
}

TEST(StepsThatFollow, EachWayToSpoilOneIsRefused) {
  struct Case {
    std::function<void(StepBatch &)> spoil;
    std::string says;
  };
  const std::vector<Case> cases = {
      {[](StepBatch &b) { b.follows = 6; }, "step 8 cannot run: it follows step 6, and the one before it is step 7"},
      {[](StepBatch &b) { b.ids = {0}; }, "ids has 1 entries where 0 belong"},
      {[](StepBatch &b) { b.pages = {4}; }, "pages has 1 entries where 0"},
      {[](StepBatch &b) { b.from_rows = {0, 1}; }, "from_rows has 2 entries where 0"},
      {[](StepBatch &b) { b.sampling.resize(2); }, "sampling has 2 entries where 0"},
      {[](StepBatch &b) { b.new_pages.clear(); }, "sequence 1 begins a page of 4 tokens with position 8, but new_pages[0] is not for it"},
      {[](StepBatch &b) { b.new_pages[0].seq = 0; }, "sequence 1 begins a page"},
      {[](StepBatch &b) { b.new_pages[0].page = 20; }, "sequence 1 gets page 20, and there are 20"},
      {[](StepBatch &b) { b.new_pages[0].page = -1; }, "gets page -1"},
      {[](StepBatch &b) { b.new_pages.push_back({1, 5}); }, "new_pages[1] is for sequence 1, which begins no page"},
      {[](StepBatch &b) { b.new_pages.insert(b.new_pages.begin(), {0, 5}); }, "sequence 1 begins a page"},
      {[](StepBatch &b) { b.new_pages.push_back({2, 5}); }, "new_pages[1] is for sequence 2"},
  };
  FollowedStep last;
  last.set(drawn());
  for (const Case &wrong : cases) {
    StepBatch batch = following(7, {{1, 4}});
    wrong.spoil(batch);
    EXPECT_NE(refusal(last, batch).find(wrong.says), std::string::npos) << refusal(last, batch) << "\nlacks: " << wrong.says;
  }
}

TEST(StepsThatFollow, NotEveryStepCanBeFollowed) {
  const std::vector<std::function<void(StepBatch &)>> cases = {
      [](StepBatch &b) { b.sampling.clear(); },            // nothing is drawn
      [](StepBatch &b) { b.sampling[1].draw = false; },    // one token is not
      [](StepBatch &b) { b.logits_rows = {1}, b.sampling.resize(1); }, // of one no row
      [](StepBatch &b) { b = good(), b.sampling.assign(2, RowSampling{.draw = true}); }, // more tokens than sequences
  };
  for (const auto &spoil : cases) {
    StepBatch batch = drawn();
    spoil(batch);
    validate(limits(), batch);
    FollowedStep last;
    last.set(drawn());
    last.set(batch);
    EXPECT_NE(refusal(last, following(7, {{1, 4}})).find("does not draw one token for each of its sequences"), std::string::npos);
  }
  EXPECT_NE(refusal(FollowedStep(), following(7, {})).find("step 7, and the one before it is step 0"), std::string::npos);
}

TEST(StepsThatFollow, EndWithTheLongestContext) {
  FollowedStep last;
  last.set(drawn());
  uint64_t step = 7;
  for (uint32_t context = 8; context < 64; ++context, ++step) { // of the second sequence
    std::vector<NewPage> pages;
    for (int seq : {0, 1})
      if ((context - 1 + static_cast<uint32_t>(seq)) % 4 == 0)
        pages.push_back({seq, 5});
    const StepBatch next = following(step, pages);
    ASSERT_EQ(refusal(last, next), "");
    last.advance(next);
  }
  EXPECT_NE(refusal(last, following(step, {})).find("sequence 1 has a context of 65 tokens, more than the plan's max_model_len of 64"),
            std::string::npos);
}

TEST(StepTable, HoldsTheNeededPagesOfEachSequence) {
  Step step;
  step.assign(limits(), std::make_shared<StepBatch>(good()));
  ASSERT_EQ(step.page_stride, 3);
  EXPECT_EQ(step.page_table[0], 11);
  EXPECT_EQ(step.page_table[1], 3);
  EXPECT_EQ(step.page_table[3], 0);
  EXPECT_EQ(step.page_table[4], 19);
  EXPECT_EQ(step.page_table[5], 5);
  EXPECT_EQ(step.tokens(), 4);
  EXPECT_EQ(step.logits_rows(), 2);
  EXPECT_EQ(step.seqs(), 2);
}

} // namespace
