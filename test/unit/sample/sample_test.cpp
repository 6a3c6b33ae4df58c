// The sampler against a plain reference that sorts everything in double precision, chi-square tests of what
// it draws, and the properties users rely on: exact filters, ties, seeds, penalties, bans, clear errors.
#include "runtime/sample/philox.h"
#include "runtime/sample/sampler.h"
#include "runtime/support/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace llmrt;
using namespace llmrt::sample;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_row(size_t n, uint32_t seed, float scale) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> x(n);
  for (float &v : x)
    v = normal(rng);
  return x;
}

// Probabilities after temperature and all filters, by sorting. `mass_slack` shifts the top_p boundary.
std::map<int32_t, double> reference(const std::vector<float> &x, const SamplingParams &p,
                                    double mass_slack = 0) {
  std::vector<int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return x[a] > x[b]; });
  const double max = x[order[0]];
  auto weight = [&](int32_t id) { return std::exp((x[id] - max) / p.temperature); };
  std::erase_if(order, [&](int32_t id) { return weight(id) < p.min_p; });
  if (p.top_k > 0 && static_cast<size_t>(p.top_k) < order.size())
    order.resize(p.top_k);
  double total = 0;
  for (int32_t id : order)
    total += weight(id);
  if (p.top_p < 1) {
    double sum = 0;
    size_t keep = 0;
    while (keep < order.size() && (keep == 0 || sum < (p.top_p + mass_slack) * total))
      sum += weight(order[keep++]);
    order.resize(keep);
    total = sum;
  }
  std::map<int32_t, double> out;
  for (int32_t id : order)
    out[id] = weight(id) / total;
  return out;
}

int32_t sample_at(const std::vector<float> &x, const SamplingParams &p, uint64_t seed, Scratch &scratch) {
  return Sampler(p, seed, {}, {}).sample(x, scratch);
}

// The drawn token is the one at which the reference's cumulative sum, in id order, passes the same random
// number.
void expect_exact(const std::vector<float> &x, const SamplingParams &p, uint64_t seed, Scratch &scratch) {
  const int32_t token = sample_at(x, p, seed, scratch);
  const double u = uniform(seed, 0);
  bool fits = false;
  for (double slack : {0.0, 1e-6, -1e-6}) {
    double before = 0;
    for (auto [id, prob] : reference(x, p, slack)) {
      if (id == token)
        fits |= before - 2e-6 <= u && u <= before + prob + 2e-6;
      before += prob;
    }
  }
  EXPECT_TRUE(fits) << "token " << token << " seed " << seed << " top_k " << p.top_k << " top_p " << p.top_p
                    << " min_p " << p.min_p << " T " << p.temperature << " vocab " << x.size();
}

TEST(Philox, KnownAnswers) { // from the authors' Random123 distribution
  using A = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (A{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (A{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (A{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Sampler, GreedyTakesTheLowestIdOfEquals) {
  Scratch scratch;
  SamplingParams p;
  p.temperature = 0;
  for (size_t n : {1u, 5u, 64u, 1000u, 49152u}) {
    std::vector<float> x(n, -1.0f);
    for (size_t at : {size_t{0}, n / 3, n - 1}) {
      auto y = x;
      for (size_t i = at; i < n; i += 7)
        y[i] = 2.5f;
      EXPECT_EQ(sample_at(y, p, 1, scratch), static_cast<int32_t>(at));
    }
  }
}

TEST(Sampler, FiltersMatchASortingReference) {
  Scratch scratch;
  std::mt19937 rng(7);
  for (size_t vocab : {1u, 3u, 50u, 997u, 5000u}) {
    for (float scale : {0.1f, 1.0f, 4.0f}) {
      auto x = random_row(vocab, static_cast<uint32_t>(vocab), scale);
      if (vocab > 10)
        for (size_t i = 0; i < vocab; i += 3)
          x[i] = std::round(x[i]); // ties
      for (int top_k : {0, 1, 2, 20, 100, 4000})
        for (float top_p : {1.0f, 0.99f, 0.7f, 0.1f, 0.001f})
          for (float min_p : {0.0f, 0.02f, 0.5f, 1.0f})
            for (float t : {0.3f, 1.0f, 2.0f}) {
              SamplingParams p;
              p.temperature = t;
              p.top_k = top_k;
              p.top_p = top_p;
              p.min_p = min_p;
              expect_exact(x, p, rng(), scratch);
            }
    }
  }
}

TEST(Sampler, LargeVocabularyMatchesTheReference) {
  Scratch scratch;
  for (float scale : {0.5f, 3.0f}) {
    auto x = random_row(151936, 3, scale);
    for (auto [k, tp, mp] : std::vector<std::tuple<int, float, float>>{
             {0, 1.0f, 0.0f}, {0, 0.95f, 0.0f}, {50, 0.9f, 0.0f}, {0, 1.0f, 0.05f}, {5000, 0.9f, 0.0f}}) {
      SamplingParams p;
      p.top_k = k;
      p.top_p = tp;
      p.min_p = mp;
      for (uint64_t seed = 0; seed < 5; ++seed)
        expect_exact(x, p, seed, scratch);
    }
  }
}

TEST(Sampler, EqualLogitsAtTheTopKBoundaryKeepTheLowestIds) {
  Scratch scratch;
  std::vector<float> x(300, 1.0f);
  SamplingParams p;
  p.top_k = 3;
  std::set<int32_t> drawn;
  for (uint64_t seed = 0; seed < 400; ++seed)
    drawn.insert(sample_at(x, p, seed, scratch));
  EXPECT_EQ(drawn, (std::set<int32_t>{0, 1, 2}));
  p.top_k = 0;
  p.top_p = 0.0199f; // 6 tokens of 1/300 each are just enough
  drawn.clear();
  for (uint64_t seed = 0; seed < 800; ++seed)
    drawn.insert(sample_at(x, p, seed, scratch));
  EXPECT_EQ(drawn, (std::set<int32_t>{0, 1, 2, 3, 4, 5}));
}

// Draws over token indices of one seed, and over seeds, follow the filtered distribution (chi-square, fixed
// seeds).
TEST(Sampler, DrawsFollowTheDistribution) {
  Scratch scratch;
  const auto x = random_row(40, 99, 1.0f);
  for (auto [k, tp, mp, t] : std::vector<std::tuple<int, float, float, float>>{{0, 1.0f, 0.0f, 1.0f},
                                                                               {0, 1.0f, 0.0f, 2.0f},
                                                                               {10, 1.0f, 0.0f, 1.0f},
                                                                               {0, 0.8f, 0.0f, 1.0f},
                                                                               {0, 1.0f, 0.2f, 0.7f},
                                                                               {20, 0.9f, 0.05f, 1.3f}}) {
    SamplingParams p;
    p.top_k = k;
    p.top_p = tp;
    p.min_p = mp;
    p.temperature = t;
    auto expected = reference(x, p);
    for (bool by_seed : {true, false}) {
      const int draws = 40000;
      std::map<int32_t, int> counts;
      Sampler one(p, 4242, {}, {});
      for (int i = 0; i < draws; ++i) {
        int32_t token = by_seed ? sample_at(x, p, static_cast<uint64_t>(i), scratch) : one.sample(x, scratch);
        one.accept(token);
        ++counts[token];
      }
      double chi2 = 0;
      for (auto [id, n] : counts)
        EXPECT_TRUE(expected.count(id)) << "token " << id << " should have been filtered";
      for (auto [id, prob] : expected) {
        double e = prob * draws;
        chi2 += (counts[id] - e) * (counts[id] - e) / e;
      }
      const double df = static_cast<double>(expected.size()) - 1;
      EXPECT_LT(chi2, df + 5 * std::sqrt(2 * df) + 5)
          << "top_k " << k << " top_p " << tp << " by_seed " << by_seed;
    }
  }
}

TEST(Sampler, SameSeedSameTokens) {
  Scratch a, b;
  SamplingParams p;
  p.top_p = 0.9f;
  Sampler one(p, 5, {}, {}), two(p, 5, {}, {}), other(p, 6, {}, {});
  int differs = 0;
  for (int i = 0; i < 200; ++i) {
    auto x = random_row(500, static_cast<uint32_t>(i), 1.0f);
    int32_t t = one.sample(x, a);
    // Other rows pass through the scratch in between; sampling twice without accepting changes nothing.
    sample_at(random_row(800, 1, 1.0f), p, 77, b);
    EXPECT_EQ(two.sample(x, b), t);
    EXPECT_EQ(two.sample(x, b), t);
    differs += other.sample(x, b) != t;
    one.accept(t);
    two.accept(t);
    other.accept(t);
  }
  EXPECT_GT(differs, 100);
}

TEST(Sampler, PenaltiesFollowTheirFormulas) {
  Scratch scratch;
  SamplingParams p;
  p.temperature = 0;
  p.repetition_penalty = 2;
  p.frequency_penalty = 0.5f;
  p.presence_penalty = 0.25f;
  const std::vector<int32_t> prompt = {3, 3, 4};
  // Each case: logits where token 0 has the value that the formula predicts for token `id`, minus or plus a
  // little.
  auto penalised_is = [&](const Sampler &s, int32_t id, float raw, float expected) {
    std::vector<float> x(10, -100.0f);
    x[id] = raw;
    x[0] = expected - 0.01f;
    EXPECT_EQ(s.sample(x, scratch), id) << "token " << id << " fell below " << expected;
    x[0] = expected + 0.01f;
    EXPECT_EQ(s.sample(x, scratch), 0) << "token " << id << " stayed above " << expected;
  };
  Sampler s(p, 1, prompt, {});
  penalised_is(s, 3, 4.0f, 2.0f);   // in the prompt: divided
  penalised_is(s, 4, -4.0f, -8.0f); // negative: multiplied
  penalised_is(s, 5, 4.0f, 4.0f);   // not seen
  s.accept(5);
  s.accept(5);
  s.accept(3);
  penalised_is(s, 5, 4.0f, 4.0f / 2 - 2 * 0.5f - 0.25f);
  penalised_is(s, 3, 4.0f, 4.0f / 2 - 0.5f - 0.25f);
  penalised_is(s, 4, 4.0f, 2.0f); // only in the prompt: no frequency, no presence

  SamplingParams output_only;
  output_only.temperature = 0;
  output_only.presence_penalty = -1;
  Sampler o(output_only, 1, prompt, {});
  penalised_is(o, 3, 1.0f, 1.0f);
  o.accept(3);
  penalised_is(o, 3, 1.0f, 2.0f);
}

TEST(Sampler, BiasActsBeforePenalties) {
  Scratch scratch;
  SamplingParams p;
  p.temperature = 0;
  p.repetition_penalty = 2;
  p.logit_bias = {{2, 6.0f}};
  Sampler s(p, 1, std::vector<int32_t>{2}, {});
  std::vector<float> x = {3.4f, 0, -2, 0}; // (-2 + 6) / 2 = 2
  EXPECT_EQ(s.sample(x, scratch), 0);
  x[0] = 1.9f;
  EXPECT_EQ(s.sample(x, scratch), 2);
  p.logit_bias = {{0, -kInf}};
  EXPECT_EQ(Sampler(p, 1, {}, {}).sample(std::vector<float>{9, 1, 2, 3}, scratch), 3);
}

TEST(Sampler, EndTokensAreBarredBeforeMinTokens) {
  Scratch scratch;
  SamplingParams p;
  p.temperature = 0;
  p.min_tokens = 2;
  const std::vector<int32_t> ends = {1, 3};
  Sampler s(p, 1, {}, ends);
  const std::vector<float> x = {0, 5, 1, 4};
  EXPECT_EQ(s.sample(x, scratch), 2);
  s.accept(2);
  EXPECT_EQ(s.sample(x, scratch), 2);
  s.accept(2);
  EXPECT_EQ(s.sample(x, scratch), 1);
}

TEST(Sampler, BadLogitsAreAnErrorNotAToken) {
  Scratch scratch;
  for (float t : {0.0f, 1.0f})
    for (float bad : {std::nanf(""), kInf}) {
      SamplingParams p;
      p.temperature = t;
      std::vector<float> x(100, 1.0f);
      x[71] = bad;
      try {
        sample_at(x, p, 1, scratch);
        FAIL() << "sampled from a bad row";
      } catch (const Error &e) {
        EXPECT_NE(std::string(e.what()).find("71"), std::string::npos) << e.what();
      }
      EXPECT_THROW(token_logprobs(x, 0, 1, scratch), Error);
    }
  SamplingParams p;
  EXPECT_THROW(sample_at(std::vector<float>(4, -kInf), p, 1, scratch), Error);
  p.logit_bias = {{0, -kInf}, {1, -kInf}};
  EXPECT_THROW(sample_at({1, 2}, p, 1, scratch), Error);
  EXPECT_EQ(sample_at({1, 2, -50}, p, 1, scratch), 2);
}

TEST(Sampler, ExtremeTemperatures) {
  Scratch scratch;
  auto x = random_row(200, 5, 3.0f);
  SamplingParams p;
  p.temperature = 2e-5f;
  int32_t best = static_cast<int32_t>(std::max_element(x.begin(), x.end()) - x.begin());
  for (uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(sample_at(x, p, seed, scratch), best);
  p.temperature = 1e30f; // flat, but a banned token stays banned
  x.assign(4, 1.0f);
  x[2] = -kInf;
  std::set<int32_t> drawn;
  for (uint64_t seed = 0; seed < 100; ++seed)
    drawn.insert(sample_at(x, p, seed, scratch));
  EXPECT_EQ(drawn, (std::set<int32_t>{0, 1, 3}));
}

TEST(Logprobs, RawValuesRanksAndTop) {
  Scratch scratch;
  for (size_t vocab : {3u, 100u, 49152u}) {
    auto x = random_row(vocab, 11, 2.0f);
    x[vocab - 1] = x[0]; // a tie
    double max = *std::max_element(x.begin(), x.end()), sum = 0;
    for (float v : x)
      sum += std::exp(v - max);
    std::vector<int32_t> order(vocab);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return x[a] > x[b]; });
    for (int32_t token : {0, static_cast<int32_t>(vocab / 2), static_cast<int32_t>(vocab - 1), order[0]}) {
      TokenLogprobs lp = token_logprobs(x, token, 20, scratch);
      EXPECT_NEAR(lp.logprob, x[token] - max - std::log(sum), 2e-6);
      EXPECT_EQ(order[lp.rank - 1], token);
      ASSERT_EQ(lp.top.size(), std::min<size_t>(20, vocab));
      for (size_t i = 0; i < lp.top.size(); ++i) {
        EXPECT_EQ(lp.top[i].first, order[i]);
        EXPECT_NEAR(lp.top[i].second, x[order[i]] - max - std::log(sum), 2e-6);
      }
    }
    EXPECT_TRUE(token_logprobs(x, 1, 0, scratch).top.empty());
  }
  EXPECT_THROW(token_logprobs(std::vector<float>{1, 2}, 2, 0, scratch), Error);
}

TEST(Params, OutOfRangeIsASentence) {
  auto bad = [](auto change) {
    SamplingParams p;
    change(p);
    return check_sampling(p, 100);
  };
  EXPECT_EQ(check_sampling({}, 100), "");
  const float nan = std::nanf("");
  EXPECT_NE(bad([&](auto &p) { p.temperature = -1; }).find("-1"), std::string::npos);
  EXPECT_NE(bad([&](auto &p) { p.temperature = nan; }), "");
  EXPECT_NE(bad([&](auto &p) { p.temperature = kInf; }), "");
  EXPECT_NE(bad([&](auto &p) { p.top_p = 0; }), "");
  EXPECT_NE(bad([&](auto &p) { p.top_p = nan; }), "");
  EXPECT_NE(bad([&](auto &p) { p.min_p = 1.5f; }), "");
  EXPECT_NE(bad([&](auto &p) { p.top_k = -2; }), "");
  EXPECT_NE(bad([&](auto &p) { p.presence_penalty = 3; }), "");
  EXPECT_NE(bad([&](auto &p) { p.frequency_penalty = nan; }), "");
  EXPECT_NE(bad([&](auto &p) { p.repetition_penalty = 0; }), "");
  EXPECT_NE(bad([&](auto &p) { p.min_tokens = 17; }).find("17"), std::string::npos);
  EXPECT_NE(bad([&](auto &p) { p.logit_bias = {{100, 1.0f}}; }).find("100"), std::string::npos);
  EXPECT_NE(bad([&](auto &p) { p.logit_bias = {{5, nan}}; }), "");
  EXPECT_NE(bad([&](auto &p) { p.stop_token_ids = {-1}; }), "");
  EXPECT_NE(bad([&](auto &p) { p.logprobs = 257; }), "");
  EXPECT_NE(bad([&](auto &p) { p.logit_bias.resize(5000); }).find("4096"), std::string::npos);
}

} // namespace
