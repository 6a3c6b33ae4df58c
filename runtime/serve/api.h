// The OpenAI-compatible surface: routes a request, checks it, and answers it through its exchange. Knows nothing of
// sockets. Long work (JSON, templates, tokenization) runs on a small pool, so that connections stay responsive.
#pragma once

#include "runtime/sched/engine.h"
#include "runtime/serve/exchange.h"
#include "runtime/serve/generation.h"
#include "runtime/serve/model.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace llmrt::serve {

struct ApiOptions {
  std::string api_key;        ///< empty: none is asked for
  std::string version;        ///< what /version says
  std::string metrics_prefix = "llmrt:"; ///< of every name in /metrics
  double stall_seconds = 300; ///< without a finished step while work is pending, /health says 503
};

class Api {
public:
  /// Runs work elsewhere, in any order.
  using Run = std::function<void(std::function<void()>)>;

  Api(Engine &engine, std::shared_ptr<const Model> model, ApiOptions options, Run run_on_pool);
  ~Api();

  /// Answers, now or later. Never throws.
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange);

  /// From now on new generations get 503.
  void drain();
  /// Ends what is running, telling clients.
  void shut_down_running();
  /// Nothing of the engine's reaches connections any more.
  void disconnect() { gate_->close(); }
  /// Generations that have not been answered and released yet.
  int64_t running() const { return counts_->running; }

private:
  using Handler = void (Api::*)(const HttpRequest &, const std::shared_ptr<Exchange> &);
  struct Route {
    const char *path, *method;
    Handler handler;
    bool on_pool, open; ///< open: without an API key
  };
  static const Route kRoutes[];

  const Route *find_route(const HttpRequest &request, std::string &allowed) const;
  void answer(const Route &route, const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void check_key(const HttpRequest &request) const;
  void chat(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void completions(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void generate(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange, bool is_chat);
  void models(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void model(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void health(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void metrics(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void version(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void tokenize(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  void detokenize(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange);
  nlohmann::ordered_json model_card() const;
  void warn_unknown(const Fields &fields);

  Engine &engine_;
  const std::shared_ptr<const Model> model_;
  const ApiOptions options_;
  const Run run_on_pool_;
  const std::shared_ptr<EventGate> gate_ = std::make_shared<EventGate>();
  const std::shared_ptr<GenerationCounts> counts_ = std::make_shared<GenerationCounts>();
  std::atomic<bool> draining_ = false; ///< no new requests
  std::atomic<bool> ending_ = false;   ///< and those that run are ended

  std::mutex mutex_; // guards what follows
  std::set<std::string> warned_fields_;
  std::vector<std::weak_ptr<Generation>> generations_;
};

} // namespace llmrt::serve
