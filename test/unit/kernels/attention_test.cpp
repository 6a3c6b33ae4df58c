// Paged attention against a double-precision loop over the same (rounded) keys and values, with outputs of
// size about one held to 3e-6 * (1 + |score|max); and bitwise equality however the prompt is cut, batched,
// paged and shared among threads.
#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/convert.h"
#include "test/unit/kernels/support.h"

using namespace llmrt::cpu;
using namespace llmrt::cpu::test;

namespace {

struct Config {
  int head_dim = 64, kv_heads = 2, page_size = 16;
  std::vector<int32_t> kv_head_of_q = {0, 0, 1, 1};
  DType dtype = DType::f32;
  int window = 0;
  float softcap = 0;
  bool sinks = false;
};

// One sequence's tokens: q, k, v rows as one fused row [q | k | v], and a paged pool holding several
// sequences.
struct Sequence {
  Sequence(const Config &c, int64_t tokens, uint32_t seed)
      : tokens(tokens), width((static_cast<int64_t>(c.kv_head_of_q.size()) + 2 * c.kv_heads) * c.head_dim),
        rows(static_cast<size_t>(tokens * width)) {
    randomize(rows, seed);
  }
  int64_t tokens, width;
  Guarded<float> rows;
};

struct Pool {
  Pool(const Config &c, int64_t pages) : pages(pages) {
    const int64_t page =
        2 * c.kv_heads * c.page_size * c.head_dim * static_cast<int64_t>(dtype_bytes(c.dtype));
    stride = page + 32;
    bytes = std::make_unique<Guarded<uint8_t>>(static_cast<size_t>(pages * stride - 32));
    bytes->poison(); // stale memory may hold NaN
    view = {bytes->data(), stride, c.dtype, c.kv_heads, c.page_size, c.head_dim};
  }
  int64_t pages, stride;
  std::unique_ptr<Guarded<uint8_t>> bytes;
  KvPool view;
};

float rounded(DType t, float x) {
  return t == DType::f32 ? x : t == DType::bf16 ? bf16_to_f32(f32_to_bf16(x)) : f16_to_f32(f32_to_f16(x));
}

std::vector<float> sink_values(const Config &c) {
  std::vector<float> s;
  for (size_t i = 0; i < c.kv_head_of_q.size(); i++)
    s.push_back(0.5f * static_cast<float>(i) - 0.3f);
  return s;
}

// Runs `steps`, each a list of (sequence, new tokens), against one pool; returns every token's output row.
using Step = std::vector<std::pair<int, int64_t>>;
std::vector<std::vector<float>> run(const Config &c, const std::vector<Sequence *> &seqs,
                                    const std::vector<Step> &steps, int threads) {
  Team team(threads);
  const int64_t q_heads = static_cast<int64_t>(c.kv_head_of_q.size()), hd = c.head_dim,
                q_width = q_heads * hd;
  int64_t max_pages = 1;
  for (const Sequence *s : seqs)
    max_pages = std::max(max_pages, (s->tokens + c.page_size - 1) / c.page_size);
  const int64_t num_pages = max_pages * static_cast<int64_t>(seqs.size());
  Pool pool(c, num_pages);
  // Pages dealt out in a scrambled order.
  std::vector<int32_t> order(static_cast<size_t>(num_pages));
  for (size_t i = 0; i < order.size(); i++)
    order[i] = static_cast<int32_t>(i);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  std::vector<int64_t> done(seqs.size(), 0);
  std::vector<std::vector<float>> outs;
  for (const Sequence *s : seqs)
    outs.emplace_back(static_cast<size_t>(s->tokens * q_width));
  const std::vector<float> sinks = sink_values(c);
  for (const Step &step : steps) {
    int64_t T = 0;
    for (auto &[s, n] : step)
      T += n;
    const int64_t width = seqs[0]->width, out_stride = q_width + 3;
    Guarded<float> x(static_cast<size_t>(T * width)),
        out(static_cast<size_t>((T - 1) * out_stride + q_width));
    out.poison();
    std::vector<int32_t> starts = {0}, contexts, table;
    std::vector<int64_t> slots;
    for (auto &[s, n] : step) {
      const int32_t *pages = order.data() + s * max_pages;
      std::memcpy(x.data() + starts.back() * width,
                  seqs[static_cast<size_t>(s)]->rows.data() + done[static_cast<size_t>(s)] * width,
                  static_cast<size_t>(n * width) * 4);
      for (int64_t i = 0; i < n; i++) {
        const int64_t pos = done[static_cast<size_t>(s)] + i;
        slots.push_back(pages[pos / c.page_size] * int64_t{c.page_size} + pos % c.page_size);
      }
      done[static_cast<size_t>(s)] += n;
      starts.push_back(starts.back() + static_cast<int32_t>(n));
      contexts.push_back(static_cast<int32_t>(done[static_cast<size_t>(s)]));
      const int64_t used = (contexts.back() + c.page_size - 1) / c.page_size;
      for (int64_t i = 0; i < max_pages; i++)
        table.push_back(i < used ? pages[i] : -1);
    }
    kv_append(team, pool.view, x.data() + q_width, width, x.data() + q_width + c.kv_heads * hd, width,
              slots.data(), T);
    paged_attention(team, {.q = x.data(),
                           .q_stride = width,
                           .out = out.data(),
                           .out_stride = out_stride,
                           .kv = pool.view,
                           .q_heads = static_cast<int>(q_heads),
                           .kv_head_of_q = c.kv_head_of_q.data(),
                           .num_seqs = static_cast<int>(step.size()),
                           .seq_starts = starts.data(),
                           .context_lens = contexts.data(),
                           .page_table = table.data(),
                           .page_table_stride = max_pages,
                           .scale = 1.0f / std::sqrt(static_cast<float>(hd)),
                           .window = c.window,
                           .softcap = c.softcap,
                           .sinks = c.sinks ? sinks.data() : nullptr});
    int64_t max_context = *std::max_element(contexts.begin(), contexts.end());
    EXPECT_LE(team.scratch_bytes(),
              attention_scratch_bytes(threads, static_cast<int>(q_heads), c.kv_heads, c.head_dim, 4096,
                                      std::max<int64_t>(max_context, 4096)));
    for (size_t i = 0; i < step.size(); i++)
      for (int64_t r = 0; r < step[i].second; r++)
        std::memcpy(outs[static_cast<size_t>(step[i].first)].data() +
                        (contexts[i] - step[i].second + r) * q_width,
                    out.data() + (starts[i] + r) * out_stride, static_cast<size_t>(q_width) * 4);
  }
  return outs;
}

void expect_matches_double(const Config &c, const Sequence &s, const std::vector<float> &got) {
  const int64_t q_heads = static_cast<int64_t>(c.kv_head_of_q.size()), hd = c.head_dim;
  const double scale = 1.0f / std::sqrt(static_cast<float>(hd));
  const std::vector<float> sinks = sink_values(c);
  for (int64_t t = 0; t<s.tokens; t += s.tokens> 200 ? 37 : 1)
    for (int64_t h = 0; h < q_heads; h++) {
      const float *q = s.rows.data() + t * s.width + h * hd;
      const int64_t kv = c.kv_head_of_q[static_cast<size_t>(h)];
      std::vector<double> score;
      const int64_t lo = c.window > 0 ? std::max<int64_t>(0, t - c.window + 1) : 0;
      double top = c.sinks ? sinks[static_cast<size_t>(h)] : -1e300, size = 0;
      for (int64_t j = lo; j <= t; j++) {
        const float *k = s.rows.data() + j * s.width + (q_heads + kv) * hd;
        double dot = 0;
        for (int64_t d = 0; d < hd; d++)
          dot += static_cast<double>(q[d]) * rounded(c.dtype, k[d]);
        dot *= scale;
        if (c.softcap > 0)
          dot = c.softcap * std::tanh(dot / c.softcap);
        size = std::max(size, std::fabs(dot));
        score.push_back(dot);
        top = std::max(top, dot);
      }
      double sum = c.sinks ? std::exp(sinks[static_cast<size_t>(h)] - top) : 0;
      std::vector<double> acc(static_cast<size_t>(hd), 0.0);
      for (int64_t j = lo; j <= t; j++) {
        const double e = std::exp(score[static_cast<size_t>(j - lo)] - top);
        sum += e;
        const float *v = s.rows.data() + j * s.width + (q_heads + c.kv_heads + kv) * hd;
        for (int64_t d = 0; d < hd; d++)
          acc[static_cast<size_t>(d)] += e * rounded(c.dtype, v[d]);
      }
      for (int64_t d = 0; d < hd; d++)
        ASSERT_NEAR(got[static_cast<size_t>((t * q_heads + h) * hd + d)], acc[static_cast<size_t>(d)] / sum,
                    3e-6 * (1 + size))
            << "token " << t << " head " << h << " dim " << d;
    }
}

std::vector<Step> whole(int64_t n) {
  return {{{0, n}}};
}

class AttentionTest : public EachIsa {};

TEST_P(AttentionTest, MatchesDouble) {
  std::vector<Config> configs;
  for (int hd : {64, 80, 96, 100, 128, 224, 256, 37, 1})
    configs.push_back({.head_dim = hd});
  for (DType t : {DType::bf16, DType::f16})
    for (int hd : {64, 100})
      configs.push_back({.head_dim = hd, .dtype = t});
  configs.push_back({.kv_heads = 3, .kv_head_of_q = {2, 0, 2, 2, 0, 2, 1}}); // uneven and unsorted groups
  configs.push_back({.kv_heads = 3, .kv_head_of_q = {0, 2, 2}});             // a KV head that nobody reads
  configs.push_back({.page_size = 1});
  configs.push_back({.page_size = 24});
  configs.push_back({.window = 5});
  configs.push_back({.window = 64});
  configs.push_back({.dtype = DType::bf16, .window = 100, .softcap = 50, .sinks = true});
  configs.push_back({.softcap = 2});
  configs.push_back({.sinks = true});
  for (const Config &c : configs)
    for (int64_t n : {1, 5, 150}) {
      Sequence s(c, n, static_cast<uint32_t>(n));
      const auto out = run(c, {&s}, whole(n), 1 + static_cast<int>(n % 3));
      expect_matches_double(c, s, out[0]);
      if (HasFatalFailure()) {
        ADD_FAILURE() << "head_dim " << c.head_dim << " window " << c.window << " page " << c.page_size
                      << " tokens " << n;
        return;
      }
    }
}

TEST_P(AttentionTest, LongContextMatchesDouble) {
  Config c{.head_dim = 64, .kv_heads = 1, .kv_head_of_q = {0, 0, 0}};
  for (int window : {0, 700}) {
    c.window = window;
    Sequence s(c, 1500, 3);
    expect_matches_double(c, s, run(c, {&s}, whole(1500), 2)[0]);
  }
}

// A group wider than a block of rows: one token's heads fall into several items.
TEST_P(AttentionTest, ManyQueryHeadsOnOneKvHead) {
  Config c{.head_dim = 16, .kv_heads = 1, .kv_head_of_q = std::vector<int32_t>(150, 0)};
  Sequence s(c, 9, 4);
  expect_matches_double(c, s, run(c, {&s}, whole(9), 2)[0]);
}

TEST_P(AttentionTest, RowsDoNotDependOnChunksBatchPagesOrThreads) {
  std::vector<Config> configs = {
      {.kv_heads = 2, .kv_head_of_q = {0, 0, 0, 1, 1}},
      {.head_dim = 100, .dtype = DType::bf16},
      {.head_dim = 64, .dtype = DType::f16, .window = 130},
      {.head_dim = 32, .softcap = 30, .sinks = true},
  };
  for (Config c : configs) {
    const int64_t n = 1200, others = 90;
    Sequence a(c, n, 1), b(c, others, 2);
    const auto want = run(c, {&a, &b}, {{{0, n}}, {{1, others}}}, 1);
    // Chunks of many sizes, mixed with the other sequence's prefill and decode; then decode to the end.
    std::vector<Step> chunks = {{{0, 1}, {1, 40}}, {{1, 1}, {0, 511}}, {{0, 100}}, {{1, 49}, {0, 388}}};
    for (int64_t left = n - 1000; left > 0; left--)
      chunks.push_back({{0, 1}});
    for (int threads : {1, 2, 3}) {
      c.page_size = threads == 2 ? 16 : 7 * threads;
      const auto got = run(c, {&a, &b}, chunks, threads);
      for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < want[s].size(); i++)
          ASSERT_EQ(want[s][i], got[s][i]) << "sequence " << s << " element " << i << " threads " << threads;
    }
  }
}

TEST_P(AttentionTest, AppendSkipsNegativeSlotsAndTouchesNothingElse) {
  Config c{.head_dim = 5, .kv_heads = 2, .page_size = 4, .dtype = DType::bf16};
  Pool pool(c, 3);
  Guarded<float> k(4 * 11), v(4 * 13);
  randomize(k, 1);
  randomize(v, 2);
  const int64_t slots[] = {9, -1, 0, 3};
  Team team(2);
  kv_append(team, pool.view, k.data(), 11, v.data(), 13, slots, 4);
  size_t written = 0;
  for (int64_t page = 0; page < 3; page++)
    for (int which = 0; which < 2; which++)
      for (int h = 0; h < 2; h++)
        for (int off = 0; off < 4; off++)
          for (int d = 0; d < 5; d++) {
            uint16_t bits;
            std::memcpy(&bits,
                        pool.bytes->data() + page * pool.stride + (((which * 2 + h) * 4 + off) * 5 + d) * 2,
                        2);
            const auto *at = std::find(slots, slots + 4, page * 4 + off);
            if (at == slots + 4) {
              ASSERT_EQ(bits, 0xffff);
              continue;
            }
            const size_t t = static_cast<size_t>(at - slots);
            const float want = which == 0 ? k[t * 11 + static_cast<size_t>(h * 5 + d)]
                                          : v[t * 13 + static_cast<size_t>(h * 5 + d)];
            ASSERT_EQ(bits, f32_to_bf16(want));
            written++;
          }
  EXPECT_EQ(written, 3u * 2 * 2 * 5);
  for (int64_t page = 0; page + 1 < 3; page++) // nor between the pages
    for (int i = 0; i < 32; i++)
      ASSERT_EQ((*pool.bytes)[static_cast<size_t>((page + 1) * pool.stride - 32 + i)], 0xff);
}

INSTANTIATE_EACH_ISA(AttentionTest);

} // namespace
