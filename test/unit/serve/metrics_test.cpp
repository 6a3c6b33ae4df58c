// /metrics: the format to the letter, and that choices are counted by how they ended.
#include "runtime/serve/metrics.h"
#include "test/unit/serve/fixture.h"

#include <algorithm>
#include <functional>

namespace llmrt::test {
namespace {

bool has_line(const std::string &text, const std::string &line) { return ("\n" + text).find("\n" + line + "\n") != std::string::npos; }

TEST(Histograms, BoundsAreInclusive) {
  static constexpr double bounds[] = {1, 2.5};
  Histogram histogram(bounds);
  for (double value : {0.0, 1.0, 1.5, 2.5, 2.6})
    histogram.observe(value);
  histogram.observe(7, 3);
  EXPECT_EQ(histogram.counts(), (std::vector<uint64_t>{2, 2, 4}));
  EXPECT_DOUBLE_EQ(histogram.sum(), 28.6);
  EXPECT_EQ(histogram.total(), 8u);
  for (auto series : {request_seconds(), token_seconds(), token_counts()})
    EXPECT_TRUE(std::is_sorted(series.begin(), series.end(), std::less_equal<>()) && series[0] > 0);
}

TEST(MetricsText, IsTheFormat) {
  EngineStats stats;
  stats.running = 3, stats.pages_total = 8, stats.pages_used = 2, stats.generation_tokens = 12345678901;
  EngineMetrics metrics;
  metrics.queue.observe(0.003);
  metrics.queue.observe(5000);
  serve::GenerationCounts counts;
  counts.abort = 4;
  const std::string text = serve::metrics_text("a:b_", "odd \"name\"\\\n", stats, metrics, counts);
  const std::string labels = R"(model_name="odd \"name\"\\\n",engine="0")";
  EXPECT_TRUE(has_line(text, "# TYPE a:b_num_requests_running gauge"));
  EXPECT_TRUE(has_line(text, "a:b_num_requests_running{" + labels + "} 3"));
  EXPECT_TRUE(has_line(text, "a:b_kv_cache_usage_perc{" + labels + "} 0.25"));
  EXPECT_TRUE(has_line(text, "a:b_generation_tokens_total{" + labels + "} 12345678901"));
  EXPECT_TRUE(has_line(text, "a:b_request_success_total{" + labels + ",finished_reason=\"abort\"} 4"));
  const std::string queue = "a:b_request_queue_time_seconds";
  EXPECT_TRUE(has_line(text, queue + "_bucket{" + labels + ",le=\"0.0025\"} 0"));
  EXPECT_TRUE(has_line(text, queue + "_bucket{" + labels + ",le=\"0.005\"} 1"));
  EXPECT_TRUE(has_line(text, queue + "_bucket{" + labels + ",le=\"1000\"} 1"));
  EXPECT_TRUE(has_line(text, queue + "_bucket{" + labels + ",le=\"+Inf\"} 2"));
  EXPECT_TRUE(has_line(text, queue + "_sum{" + labels + "} 5000.003"));
  EXPECT_TRUE(has_line(text, queue + "_count{" + labels + "} 2"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(MetricsText, Prefixes) {
  for (const char *good : {"", "llmrt:", "llmrt_", "vllm:", "_9", "A"})
    EXPECT_TRUE(serve::is_metrics_prefix(good)) << good;
  for (const char *bad : {"9", "a-b", "a b", "\n", "ä", "a{"})
    EXPECT_FALSE(serve::is_metrics_prefix(bad)) << bad;
}

class Metrics : public ServeTest {
protected:
  bool counted(const std::string &reason, int n) {
    const std::string text = get("/metrics").body;
    return text.find("finished_reason=\"" + reason + "\"} " + std::to_string(n) + "\n") != std::string::npos;
  }
};

TEST_F(Metrics, CountHowChoicesEnd) {
  options.api_key = "secret"; // not asked for here
  const Reply reply = get("/metrics");
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.headers.at("content-type").find("text/plain; version=0.0.4"), std::string::npos);
  EXPECT_TRUE(counted("stop", 0) && counted("length", 0) && counted("abort", 0) && counted("error", 0));
}

TEST_F(Metrics, EachChoiceOnce) {
  post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 3}, {"n", 2}});
  EXPECT_TRUE(counted("length", 2));
  post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 100}});
  EXPECT_TRUE(counted("stop", 1)); // the script's end
  post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 100}, {"stop", "world"}});
  EXPECT_TRUE(counted("stop", 2)); // though the engine saw a cancellation
  engine.fail_with = "a reason";
  post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 100}});
  EXPECT_TRUE(counted("error", 1));
  engine.fail_with.clear();
  EXPECT_TRUE(counted("abort", 0));

  engine.step = std::chrono::milliseconds(2);
  {
    Client client(port());
    client.send(Client::post_text("/v1/completions", R"({"prompt": ["a", "b"], "max_tokens": 30, "ignore_eos": true, "n": 2})"));
    ASSERT_TRUE(eventually([&] { return engine.stats().running == 4; }));
  }
  EXPECT_TRUE(eventually([&] { return counted("abort", 4); }));
  EXPECT_TRUE(counted("length", 2) && counted("stop", 2) && counted("error", 1));
}

} // namespace
} // namespace llmrt::test
