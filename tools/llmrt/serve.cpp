// `llmrt serve`: the OpenAI-compatible HTTP server over a plan.
#include "runtime/sched/defaults.h"
#include "runtime/serve/log.h"
#include "runtime/serve/metrics.h"
#include "runtime/serve/server.h"
#include "runtime/support/error.h"
#include "tools/llmrt/commands.h"
#include "tools/llmrt/prompts.h"
#include "tools/llmrt/startup.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>

namespace llmrt::tool {
namespace {

struct ServeFlags {
  StartFlags start;
  serve::ServerOptions server;
  uint32_t max_queued = 1024;
  unsigned drain_seconds = 4;
};

std::string text_of(const flatbuffers::String *s) { return s ? s->str() : std::string(); }

// The template is parsed at start, so that a broken one is known before the first chat.
void set_chat_template(serve::Model &model, const plan::Plan &plan) {
  const plan::Text *text = plan.text();
  const std::string source = text ? text_of(text->chat_template()) : std::string();
  if (!model.tokenizer)
    model.no_chat_reason = "The plan carries no tokenizer, so chat is not possible: use /v1/completions with token ids.";
  else if (source.empty())
    model.no_chat_reason = "The model has no chat template, so chat is not possible: use /v1/completions.";
  if (model.no_chat_reason.empty()) {
    try {
      model.chat_template = std::make_shared<const text::ChatTemplate>(source, text_of(text->bos_token()),
                                                                       text_of(text->eos_token()));
    } catch (const text::TemplateError &e) {
      model.no_chat_reason = std::string("The model's chat template cannot be used, so chat is not possible: ") + e.what();
    }
  }
  if (!model.chat_template)
    serve::log_warning(model.no_chat_reason);
}

std::shared_ptr<const serve::Model> describe(const plan::LoadedPlan &loaded) {
  const plan::Plan &plan = loaded.root();
  auto model = std::make_shared<serve::Model>();
  model->name = text_of(plan.model()->served_name());
  if (model->name.empty())
    model->name = text_of(plan.model()->name());
  model->max_model_len = plan.limits()->max_model_len();
  model->vocab = plan.model()->vocab();
  model->defaults = default_sampling(plan);
  model->created = std::time(nullptr);
  model->tokenizer = load_tokenizer(plan);
  set_chat_template(*model, plan);
  return model;
}

// Ends the process once the engine has died, so that what runs it can start another: a rank that hangs in a device or was
// stopped never comes back, so nothing is waited for but the answers that clients still get.
class DeathWatch {
public:
  explicit DeathWatch(Engine &engine) : thread_([this, &engine] { watch(engine); }) {}
  ~DeathWatch() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

private:
  void watch(Engine &engine) {
    using namespace std::chrono_literals;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, 250ms, [&] { return over_; })) {
      const std::string why = engine.stats().fatal;
      if (why.empty())
        continue;
      serve::log_error("the engine has died, and this server ends: " + why);
      if (changed_.wait_for(lock, 2s, [&] { return over_; }))
        return;
      std::fflush(nullptr);
      std::_Exit(EXIT_FAILURE);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_; // last: it uses the others
};

void serve_plan(ServeFlags flags) {
  flags.server.version = LLMC_VERSION;
  flags.server.drain_time = std::chrono::seconds(flags.drain_seconds);
  serve::check_address(flags.server); // before the weights are loaded
  Started started = start(flags.start, flags.max_queued, true);
  serve::Server server(*started.engine, describe(*started.plan), flags.server);
  serve::log_info("serving on " + server.url());
  const DeathWatch watch(*started.engine);
  server.run();
}

} // namespace

void add_serve_command(CLI::App &app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App *command = app.add_subcommand("serve", "Serve the OpenAI-compatible HTTP API");
  command->footer("Endpoints: /v1/chat/completions, /v1/completions, /v1/models, /tokenize, /detokenize, /health, /metrics, /version.\n"
                  "SIGTERM or SIGINT ends it: running requests get some seconds, new ones are refused.\n"
                  "\n"
                  "Examples:\n"
                  "  llmrt serve plan.fb                            # http://127.0.0.1:8000\n"
                  "  llmrt serve plan.fb --host 0.0.0.0 --port 80 --api-key \"$KEY\"\n"
                  "  curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \\\n"
                  "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello!\"}], \"stream\": true}'");
  flags->start.add_to(*command);
  serve::ServerOptions &server = flags->server;
  command->add_option("--host", server.host, "Address to listen on")->capture_default_str();
  command->add_option("--port", server.port, "Port to listen on; 0 takes a free one")->capture_default_str();
  command->add_option("--api-key", server.api_key, "Key that clients must send as 'Authorization: Bearer KEY'")
      ->envname("LLMRT_API_KEY");
  command->add_option("--max-queued-requests,--max-queued", flags->max_queued, "Most requests that wait; more are told to come back (429)")
      ->capture_default_str();
  command->add_option("--max-connections", server.max_connections, "Most connections at once")
      ->check(CLI::Range(1u, 1000000u))
      ->capture_default_str();
  command->add_option("--max-body-bytes", server.max_body_bytes, "Largest body of a request")->capture_default_str();
  command->add_option("--drain-seconds", flags->drain_seconds, "What running requests get after SIGTERM")
      ->check(CLI::Range(0u, 3600u))
      ->capture_default_str();
  command->add_option("--metrics-prefix", server.metrics_prefix,
                      "What the names in /metrics (Prometheus) begin with; 'vllm:' for dashboards made for vLLM")
      ->check([](const std::string &prefix) {
        return serve::is_metrics_prefix(prefix) ? std::string() : "must be letters, digits, _ and : and not begin with a digit";
      })
      ->capture_default_str();
  command->callback([flags] { serve_plan(*flags); });
}

} // namespace llmrt::tool
