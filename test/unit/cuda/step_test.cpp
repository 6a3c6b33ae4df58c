// The kernel that begins a step: inputs laid out and padded, and tokens taken from the step before; and the one that moves them a
// token further.
#include "test/unit/cuda/device_data.h"

#include <tuple>

namespace llmrt::cuda::testing {
namespace {

template <typename T> DeviceBytes up(const std::vector<T> &values) { return {values.data(), values.size() * sizeof(T)}; }

// Sequences of random lengths, `padding` more tokens, rows and sequences than there are.
void check(int seqs, int longest, int padding, bool ahead) {
  SCOPED_TRACE(::testing::Message() << seqs << " sequences of up to " << longest << ", padded by " << padding);
  std::mt19937 random(static_cast<unsigned>(seqs * 31 + longest));
  const int64_t stride = 700;
  std::vector<int32_t> ids, positions, from, starts{0}, contexts, rows, page_starts{0}, pages, drawn(300);
  std::vector<int64_t> slots;
  for (int32_t &token : drawn)
    token = static_cast<int32_t>(random() % 100000);
  for (int s = 0; s < seqs; ++s) {
    const int count = 1 + static_cast<int>(random() % static_cast<unsigned>(longest));
    for (int i = 0; i < count; ++i) {
      ids.push_back(static_cast<int32_t>(random() % 1000)), positions.push_back(static_cast<int32_t>(random() % 5000));
      slots.push_back(static_cast<int64_t>(random()) << 8), from.push_back(random() % 2 ? static_cast<int32_t>(random() % 300) : -1);
    }
    starts.push_back(static_cast<int32_t>(ids.size())), contexts.push_back(static_cast<int32_t>(random() % 9999));
    rows.push_back(static_cast<int32_t>(ids.size()) - 1);
    for (unsigned i = random() % 700 + 1; i > 0; --i)
      pages.push_back(static_cast<int32_t>(random() % 100000));
    page_starts.push_back(static_cast<int32_t>(pages.size()));
  }
  const int64_t T = static_cast<int64_t>(ids.size()), P = T + padding, R = seqs, P_R = R + padding;
  const int P_S = seqs + padding;
  DeviceBytes d_ids = up(ids), d_positions = up(positions), d_from = up(from), d_starts = up(starts), d_contexts = up(contexts),
              d_rows = up(rows), d_page_starts = up(page_starts), d_pages = up(pages), d_drawn = up(drawn), d_slots = up(slots);
  DeviceBytes to_ids(P * 4), to_positions(P * 4), to_slots(P * 8), to_starts((P_S + 1) * 4), to_contexts(P_S * 4),
      to_rows(P_R * 4), to_table(seqs * stride * 4);
  BeginStep p{};
  p.slots = d_slots.as<int64_t>(), p.ids = d_ids.as<int32_t>(), p.positions = d_positions.as<int32_t>();
  p.from_rows = ahead ? d_from.as<int32_t>() : nullptr, p.drawn = ahead ? d_drawn.as<int32_t>() : nullptr;
  p.seq_starts = d_starts.as<int32_t>(), p.context_lens = d_contexts.as<int32_t>(), p.logits_rows = d_rows.as<int32_t>();
  p.page_starts = d_page_starts.as<int32_t>(), p.pages = d_pages.as<int32_t>();
  p.T = T, p.P_T = P, p.R = R, p.P_R = P_R, p.S = seqs, p.P_S = P_S;
  p.to_slots = to_slots.as<int64_t>(), p.to_ids = to_ids.as<int32_t>(), p.to_positions = to_positions.as<int32_t>();
  p.to_seq_starts = to_starts.as<int32_t>(), p.to_context_lens = to_contexts.as<int32_t>();
  p.to_logits_rows = to_rows.as<int32_t>(), p.to_page_table = to_table.as<int32_t>(), p.page_table_stride = stride;
  begin_step(p, nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());

  std::vector<int32_t> table = to_table.read<int32_t>();
  for (int s = 0; s < seqs; ++s)
    for (int32_t i = page_starts[s]; i < page_starts[s + 1]; ++i)
      ASSERT_EQ(table[s * stride + i - page_starts[s]], pages[i]) << "page " << i << " of sequence " << s;
  for (int64_t i = 0; ahead && i < T; ++i)
    if (from[i] >= 0)
      ids[i] = drawn[from[i]];
  ids.resize(P, 0), positions.resize(P, 0), slots.resize(P, -1), contexts.resize(P_S, 0), rows.resize(P_R, 0);
  while (starts.size() < static_cast<size_t>(P_S) + 1)
    starts.push_back(starts.back() + 1);
  EXPECT_EQ(to_ids.read<int32_t>(), ids);
  EXPECT_EQ(to_positions.read<int32_t>(), positions);
  EXPECT_EQ(to_slots.read<int64_t>(), slots);
  EXPECT_EQ(to_starts.read<int32_t>(), starts);
  EXPECT_EQ(to_contexts.read<int32_t>(), contexts);
  EXPECT_EQ(to_rows.read<int32_t>(), rows);
}

TEST(BeginStep, LaysOutPadsAndTakesDrawnTokens) {
  for (bool ahead : {false, true})
    for (auto [seqs, longest] : {std::pair{1, 1}, {1, 3000}, {5, 40}, {256, 1}, {300, 20}})
      for (int padding : {0, 1, 37})
        check(seqs, longest, padding, ahead);
}

// Steps that follow each other, the same sequences a token further each: with few, and with more that begin a page at once than a
// launch can tell. `aligned`: all are of one length.
void check_following(int seqs, int page_size, bool aligned, bool draws) {
  SCOPED_TRACE(::testing::Message() << seqs << " sequences, pages of " << page_size << ", draws " << draws);
  std::mt19937 random(static_cast<unsigned>(seqs * 7 + page_size));
  const int64_t stride = 80;
  std::vector<int32_t> ids(seqs), positions(seqs), contexts(seqs), table(seqs * stride, -1), drawn(seqs);
  std::vector<int64_t> slots(seqs);
  std::vector<SampleRow> rows(seqs);
  for (int s = 0; s < seqs; ++s) {
    positions[s] = aligned ? page_size - 1 : static_cast<int32_t>(random() % 40), contexts[s] = positions[s] + 1;
    for (int page = 0; page <= positions[s] / page_size; ++page)
      table[s * stride + page] = static_cast<int32_t>(random() >> 1);
    slots[s] = int64_t{table[s * stride + positions[s] / page_size]} * page_size + positions[s] % page_size;
    rows[s] = {1, 0.5f, 0, 3, random(), random() % 100};
  }
  DeviceBytes d_ids = up(ids), d_positions = up(positions), d_contexts = up(contexts);
  DeviceBytes d_table = up(table), d_slots = up(slots), d_rows = up(rows);
  for (int step = 0; step < 2 * page_size + 3; ++step) {
    std::vector<int32_t> new_pages;
    for (int s = 0; s < seqs; ++s) {
      ids[s] = drawn[s] = static_cast<int32_t>(random() % 100000);
      const int32_t position = positions[s] = contexts[s]++;
      if (position % page_size == 0) {
        table[s * stride + position / page_size] = static_cast<int32_t>(random() >> 1);
        new_pages.insert(new_pages.end(), {s, table[s * stride + position / page_size]});
      }
      slots[s] = int64_t{table[s * stride + position / page_size]} * page_size + position % page_size;
      rows[s].counter += draws;
    }
    DeviceBytes d_drawn = up(drawn);
    FollowStep p{};
    p.drawn = d_drawn.as<int32_t>();
    p.new_pages = new_pages.data(), p.num_new_pages = static_cast<int>(new_pages.size() / 2);
    p.S = seqs, p.page_size = page_size;
    p.ids = d_ids.as<int32_t>(), p.positions = d_positions.as<int32_t>(), p.context_lens = d_contexts.as<int32_t>();
    p.slots = d_slots.as<int64_t>(), p.page_table = d_table.as<int32_t>(), p.page_table_stride = stride;
    p.rows = draws ? d_rows.as<SampleRow>() : nullptr;
    follow_step(p, nullptr);
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_EQ(d_ids.read<int32_t>(), ids) << "step " << step;
    ASSERT_EQ(d_positions.read<int32_t>(), positions) << "step " << step;
    ASSERT_EQ(d_contexts.read<int32_t>(), contexts) << "step " << step;
    ASSERT_EQ(d_slots.read<int64_t>(), slots) << "step " << step;
    ASSERT_EQ(d_table.read<int32_t>(), table) << "step " << step;
    const std::vector<SampleRow> now = d_rows.read<SampleRow>();
    for (int s = 0; s < seqs; ++s)
      ASSERT_EQ(std::tuple(now[s].seed, now[s].counter, now[s].top_k), std::tuple(rows[s].seed, rows[s].counter, rows[s].top_k))
          << "row " << s;
  }
}

TEST(FollowStep, MovesEachSequenceATokenFurther) {
  for (auto [seqs, page_size] : {std::pair{1, 1}, {1, 16}, {5, 4}, {255, 16}, {256, 1}, {257, 1}, {300, 16}, {1000, 1}, {1025, 16}})
    for (bool aligned : {false, true})
      for (bool draws : {false, true})
        check_following(seqs, page_size, aligned, draws);
}

} // namespace
} // namespace llmrt::cuda::testing
