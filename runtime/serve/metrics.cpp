#include "runtime/serve/metrics.h"

#include <charconv>

namespace llmrt::serve {

namespace {

// The shortest text that reads back as the same number.
std::string number(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

std::string escaped(const std::string &value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"')
      out += '\\';
    out += c;
  }
  return out;
}

class Page {
public:
  Page(const std::string &prefix, const std::string &model)
      : prefix_(prefix), labels_("model_name=\"" + escaped(model) + "\",engine=\"0\"") {}

  void gauge(const char *name, const char *help, double value) {
    head(name, help, "gauge");
    line(name, "", value);
  }
  void counter(const char *name, const char *help, uint64_t value) {
    head(name, help, "counter");
    line(name, "", static_cast<double>(value));
  }
  void counters(const char *name, const char *help, const char *label,
                const std::vector<std::pair<const char *, uint64_t>> &values) {
    head(name, help, "counter");
    for (const auto &[which, value] : values)
      line(name, std::string(",") + label + "=\"" + which + "\"", static_cast<double>(value));
  }
  void histogram(const std::string &name, const char *help, const Histogram &histogram) {
    head(name, help, "histogram");
    uint64_t below = 0;
    for (size_t i = 0; i < histogram.counts().size(); ++i) {
      below += histogram.counts()[i];
      const std::string bound = i < histogram.bounds().size() ? number(histogram.bounds()[i]) : "+Inf";
      line(name + "_bucket", ",le=\"" + bound + "\"", static_cast<double>(below));
    }
    line(name + "_sum", "", histogram.sum());
    line(name + "_count", "", static_cast<double>(below));
  }
  std::string take() { return std::move(text_); }

private:
  void head(const std::string &name, const char *help, const char *type) {
    text_ += "# HELP " + prefix_ + name + " " + help + "\n# TYPE " + prefix_ + name + " " + type + "\n";
  }
  void line(const std::string &name, const std::string &more_labels, double value) {
    text_ += prefix_ + name + "{" + labels_ + more_labels + "} " + number(value) + "\n";
  }

  const std::string &prefix_;
  const std::string labels_;
  std::string text_;
};

} // namespace

std::string metrics_text(const std::string &prefix, const std::string &model, const EngineStats &stats, const EngineMetrics &metrics,
                         const GenerationCounts &counts) {
  Page page(prefix, model);
  page.gauge("num_requests_running", "Requests that are in the running batch.", stats.running);
  page.gauge("num_requests_waiting", "Requests that wait to be run.", stats.waiting);
  page.gauge("kv_pages_used", "KV pages that requests hold.", stats.pages_used);
  page.gauge("kv_pages_total", "KV pages there are.", stats.pages_total);
  page.gauge("kv_cache_usage_perc", "Part of the KV pages that requests hold, 0 to 1.",
             stats.pages_total ? static_cast<double>(stats.pages_used) / stats.pages_total : 0);
  page.gauge("engine_alive", "1 while the engine lives, 0 once it has failed.", stats.fatal.empty() ? 1 : 0);
  page.counter("prompt_tokens_total", "Prompt tokens processed.", stats.prompt_tokens);
  page.counter("generation_tokens_total", "Tokens generated.", stats.generation_tokens);
  page.counter("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.", stats.prefix_queries);
  page.counter("prefix_cache_hits_total", "Prompt tokens found in the prefix cache.", stats.prefix_hits);
  page.counter("num_preemptions_total", "Times that a running request gave up its pages to another.", stats.preemptions);
  page.counter("steps_total", "Steps of the engine.", stats.steps);
  page.counters("request_success_total", "Choices that ended, by reason; abort: client gone, or server shut down.", "finished_reason",
                {{"stop", counts.stop}, {"length", counts.length}, {"abort", counts.abort}, {"error", counts.error}});
  page.histogram("request_queue_time_seconds", "From a request's arrival to its first step.", metrics.queue);
  page.histogram("request_prefill_time_seconds", "From a request's first step to its first token.", metrics.prefill);
  page.histogram("time_to_first_token_seconds", "From a request's arrival to its first token.", metrics.first_token);
  page.histogram("inter_token_latency_seconds", "Between a request's tokens.", metrics.inter_token);
  page.histogram("request_decode_time_seconds", "From a request's first token to its last.", metrics.decode);
  page.histogram("e2e_request_latency_seconds", "From a request's arrival to its end.", metrics.request);
  page.histogram("request_prompt_tokens", "Prompt tokens of a request.", metrics.prompt_tokens);
  page.histogram("request_generation_tokens", "Tokens generated for a request.", metrics.generation_tokens);
  page.histogram("iteration_tokens_total", "Tokens of a step.", metrics.step_tokens);
  page.histogram("step_time_seconds", "Time of a step.", metrics.step);
  return page.take();
}

bool is_metrics_prefix(const std::string &prefix) {
  for (size_t i = 0; i < prefix.size(); ++i) {
    const char c = prefix[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
    if (!letter && !(i > 0 && c >= '0' && c <= '9'))
      return false;
  }
  return true;
}

} // namespace llmrt::serve
