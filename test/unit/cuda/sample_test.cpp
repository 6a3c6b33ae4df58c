// Sampling: greedy ties, exact filters, draws that follow the distribution and do not depend on the batch.
#include "test/unit/cuda/device_data.h"

#include <algorithm>
#include <map>
#include <set>

namespace llmrt::cuda::testing {
namespace {

// Where the host finds the tokens.
struct HostTokens {
  explicit HostTokens(size_t count) : count(count) {
    EXPECT_EQ(cudaHostAlloc(reinterpret_cast<void **>(&tokens), count * sizeof(int32_t), cudaHostAllocPortable), cudaSuccess);
    std::fill_n(tokens, count, -7);
  }
  ~HostTokens() { cudaFreeHost(tokens); }
  std::vector<int32_t> read() const { return {tokens, tokens + count}; }
  size_t count;
  int32_t *tokens = nullptr;
};

std::vector<int32_t> draw(const std::vector<float> &logits, int64_t V, std::vector<SampleRow> rows,
                          std::vector<float> *logprobs = nullptr) {
  const int64_t R = int64_t(rows.size());
  HostTokens host(rows.size());
  DeviceBytes d_logits(logits.data(), logits.size() * 4), d_rows(rows.data(), rows.size() * sizeof(SampleRow)), tokens(R * 4),
      lp(R * 4);
  sample({tokens.as<int32_t>(), lp.as<float>(), d_logits.as<float>(), logits.size() == size_t(V) ? 0 : V,
          d_rows.as<SampleRow>(), R, V, false, host.tokens},
         nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(host.read(), tokens.read<int32_t>());
  if (logprobs)
    *logprobs = lp.read<float>();
  return tokens.read<int32_t>();
}

TEST(Sample, GreedyTakesTheLowestOfTies) {
  std::vector<float> logits = random_floats(151936, 1);
  logits[777] = logits[90001] = 20.0f;
  std::vector<float> lp;
  EXPECT_EQ(draw(logits, 151936, {{0, 1, 0, 0, 1, 1}}, &lp)[0], 777);
  double mass = 0;
  for (float x : logits)
    mass += std::exp(double(x) - 20.0);
  EXPECT_NEAR(lp[0], -std::log(mass), 1e-4);
}

// Rows that the host knows to be greedy take a pass of their own, split by how many they are.
void check_greedy(int64_t V, int R) {
  std::vector<float> logits = random_floats(size_t(V) * R, uint32_t(R), 4.0f);
  std::vector<int32_t> want;
  for (int r = 0; r < R; ++r) {
    auto begin = logits.begin() + r * V;
    if (r % 3 == 0 && V > 8)
      begin[V - 1] = begin[V / 2] = 100.0f;
    if (r == 2)
      std::fill(begin, begin + V, NAN);
    if (r == 1)
      std::fill(begin, begin + V, -INFINITY);
    want.push_back(r == 2 ? -1 : int32_t(std::max_element(begin, begin + V) - begin));
  }
  DeviceBytes d_logits(logits.data(), logits.size() * 4), tokens(R * 4);
  HostTokens host(static_cast<size_t>(R));
  sample({tokens.as<int32_t>(), nullptr, d_logits.as<float>(), V, nullptr, R, V, true, host.tokens}, nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(tokens.read<int32_t>(), want) << V << " " << R;
  EXPECT_EQ(host.read(), want) << V << " " << R;
}

TEST(Sample, AllGreedy) {
  for (int64_t V : {1, 7, 1000, 20000, 151936})
    for (int R : {1, 3, 64, 100, 300})
      if (V * R <= 16 << 20)
        check_greedy(V, R);
}

TEST(Sample, NanRowSaysSo) {
  std::vector<float> logits(1000, NAN);
  EXPECT_EQ(draw(logits, 1000, {{0, 1, 0, 0, 1, 1}})[0], -1);
}

// Frequencies of 40,000 draws against the exact filtered distribution.
void check_distribution(float temperature, int top_k, float top_p, float min_p) {
  SCOPED_TRACE(::testing::Message() << "temperature " << temperature << " k " << top_k << " p " << top_p << " min_p " << min_p);
  const int64_t V = 50;
  std::vector<float> logits = random_floats(V, 5, 2.0f);
  std::vector<std::pair<double, int>> order;
  for (int i = 0; i < V; ++i)
    order.push_back({logits[i], i});
  std::sort(order.rbegin(), order.rend());
  size_t keep = V;
  if (min_p > 0)
    while (keep > 1 && std::exp((order[keep - 1].first - order[0].first) / temperature) < min_p)
      --keep;
  if (top_k > 0)
    keep = std::min<size_t>(keep, top_k);
  double mass = 0, total = 0;
  for (size_t i = 0; i < keep; ++i)
    mass += std::exp((order[i].first - order[0].first) / temperature);
  size_t kept = 0;
  for (double sum = 0; kept < keep && (kept == 0 || sum < top_p * mass); ++kept)
    sum += std::exp((order[kept].first - order[0].first) / temperature);
  std::map<int, double> expected;
  for (size_t i = 0; i < kept; ++i)
    total += expected[order[i].second] = std::exp((order[i].first - order[0].first) / temperature);

  const int n = 40000;
  std::vector<SampleRow> rows;
  for (int i = 0; i < n; ++i)
    rows.push_back({temperature, top_p, min_p, top_k, 99, uint64_t(i)});
  std::map<int, int> counts;
  for (int32_t token : draw(logits, V, rows))
    ++counts[token];
  double chi = 0;
  for (auto [token, count] : counts)
    ASSERT_TRUE(expected.count(token)) << "token " << token << " should have been filtered";
  for (auto [token, weight] : expected) {
    const double e = n * weight / total;
    chi += (counts[token] - e) * (counts[token] - e) / e;
  }
  EXPECT_LT(chi, expected.size() + 5 * std::sqrt(2.0 * expected.size()));
}

TEST(Sample, Distributions) {
  check_distribution(1.0f, 0, 1.0f, 0);
  check_distribution(0.7f, 0, 1.0f, 0);
  check_distribution(1.3f, 7, 1.0f, 0);
  check_distribution(1.0f, 0, 0.8f, 0);
  check_distribution(1.0f, 0, 0.3f, 0);
  check_distribution(1.0f, 0, 1.0f, 0.1f);
  check_distribution(1.5f, 20, 0.9f, 0.02f);
}

// What a filter leaves of a whole vocabulary, found by drawing many times from few tokens left.
std::set<int32_t> survivors(const std::vector<float> &logits, int top_k, float top_p, int draws) {
  std::vector<SampleRow> rows;
  for (int i = 0; i < draws; ++i)
    rows.push_back({1.0f, top_p, 0, top_k, 7, uint64_t(i)});
  std::vector<int32_t> tokens = draw(logits, int64_t(logits.size()), rows);
  return {tokens.begin(), tokens.end()};
}

TEST(Sample, FiltersOfLargeVocabularies) {
  const int64_t V = 152064;
  std::vector<float> logits = random_floats(V, 11, 0.01f); // nearly flat: the last kept token is close to many
  std::vector<int> order(V);
  for (int64_t i = 0; i < V; ++i)
    order[i] = int(i);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  EXPECT_EQ(survivors(logits, 5, 1.0f, 300), std::set<int32_t>(order.begin(), order.begin() + 5));
  // top-p of a known sum: ten tokens of equal mass above a floor of nothing.
  std::vector<float> peaks(V, -60.0f);
  for (int i = 0; i < 10; ++i)
    peaks[i * 15000 + 3] = 10.0f - i * 1e-3f;
  const std::set<int32_t> six = survivors(peaks, 0, 0.55f, 300);
  EXPECT_EQ(six.size(), 6u);
  for (int32_t token : six)
    EXPECT_LT(token, 6 * 15000);
  // All alike: every token ties with the last one kept.
  EXPECT_GT(survivors(std::vector<float>(V, 0.5f), 50, 0.9f, 300).size(), 290u);
  EXPECT_GT(survivors(std::vector<float>(V, -0.0f), 0, 1.0f, 300).size(), 290u);
}

// A row draws the same token among `count` rows as alone.
void check_rows(int64_t V, int count) {
  std::vector<float> all = random_floats(count * V, 3, 3.0f);
  std::vector<SampleRow> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back({0.9f, 0.95f, 0, i % 2 ? 40 : 0, 1000u + i, 5});
  std::vector<int32_t> together = draw(all, V, rows);
  for (int i : {0, 1, count / 4 + 1, count - 1})
    EXPECT_EQ(draw(std::vector<float>(all.begin() + i * V, all.begin() + (i + 1) * V), V, {rows[i]})[0], together[i]);
  EXPECT_GT(std::set<int32_t>(together.begin(), together.end()).size(), size_t(count) * 25 / 32);
}

TEST(Sample, ARowDoesNotDependOnItsBatch) { check_rows(49152, 64); }

// Small enough for tools/gpu-sanitize.sh.
TEST(Sample, FewRowsOfASmallVocabulary) {
  check_rows(3000, 8);
  check_greedy(20000, 3);
}

} // namespace
} // namespace llmrt::cuda::testing
