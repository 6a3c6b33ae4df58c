// Routes and the handlers of everything but the generation itself (see api.h).
#include "runtime/serve/api.h"

#include "runtime/serve/api_error.h"
#include "runtime/serve/chat_messages.h"
#include "runtime/serve/json_body.h"
#include "runtime/serve/log.h"
#include "runtime/serve/metrics.h"

#include <algorithm>
#include <new>

namespace llmrt::serve {

using Json = nlohmann::ordered_json;

const Api::Route Api::kRoutes[] = {
    {"/v1/chat/completions", "POST", &Api::chat, true, false},
    {"/v1/completions", "POST", &Api::completions, true, false},
    {"/v1/models", "GET", &Api::models, false, false},
    {"/v1/models/", "GET", &Api::model, false, false}, // and what follows
    {"/health", "GET", &Api::health, false, true},
    {"/metrics", "GET", &Api::metrics, false, true},
    {"/version", "GET", &Api::version, false, true},
    {"/tokenize", "POST", &Api::tokenize, true, false},
    {"/detokenize", "POST", &Api::detokenize, true, false},
};

Api::Api(Engine &engine, std::shared_ptr<const Model> model, ApiOptions options, Run run_on_pool)
    : engine_(engine), model_(std::move(model)), options_(std::move(options)), run_on_pool_(std::move(run_on_pool)) {}

Api::~Api() { gate_->close(); }

namespace {

void respond(Exchange &exchange, const Json &json) {
  HttpResponse response;
  response.body = dump(json);
  exchange.respond(std::move(response));
}

void respond_error(Exchange &exchange, const ApiError &error) {
  HttpResponse response;
  response.status = error.status;
  response.body = error_body(error);
  if (error.status == 429 || error.status == 503)
    response.headers.emplace_back("Retry-After", "1");
  if (error.status == 401)
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  exchange.respond(std::move(response));
}

int hex_value(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string percent_decoded(const std::string &s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '%' && i + 2 < s.size() && hex_value(s[i + 1]) >= 0 && hex_value(s[i + 2]) >= 0) {
      out += static_cast<char>(hex_value(s[i + 1]) * 16 + hex_value(s[i + 2]));
      i += 2;
    } else {
      out += s[i];
    }
  }
  return out;
}

// Takes the same time wherever the texts differ.
bool same_secret(const std::string &a, const std::string &b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return difference == 0;
}

} // namespace

const Api::Route *Api::find_route(const HttpRequest &request, std::string &allowed) const {
  for (const Route &route : kRoutes) {
    std::string_view path = route.path;
    bool prefix = path.back() == '/';
    if (prefix ? !(request.path.starts_with(path) && request.path.size() > path.size()) : request.path != path)
      continue;
    allowed = route.method;
    std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
    if (method == route.method)
      return &route;
  }
  return nullptr;
}

void Api::check_key(const HttpRequest &request) const {
  if (options_.api_key.empty())
    return;
  const std::string scheme = "bearer "; // in letters of any size
  const std::string &given = request.authorization;
  const bool bearer = given.size() >= scheme.size() &&
                      std::equal(scheme.begin(), scheme.end(), given.begin(), [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
  if (!bearer || !same_secret(given.substr(scheme.size()), options_.api_key))
    throw ApiError(401, "Incorrect or missing API key: send it as 'Authorization: Bearer KEY'.", {}, "invalid_api_key");
}

void Api::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  try {
    if (request.method == "OPTIONS") { // a browser asks whether it may
      HttpResponse response;
      response.status = 204;
      // Clients send headers of their own, as OpenAI's with what they run on. "*" would leave out Authorization.
      response.headers = {{"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
                          {"Access-Control-Allow-Headers",
                           request.wanted_headers.empty() ? "Authorization, Content-Type" : request.wanted_headers},
                          {"Access-Control-Max-Age", "86400"}};
      exchange->respond(std::move(response));
      return;
    }
    std::string allowed;
    const Route *route = find_route(request, allowed);
    if (!route && allowed.empty())
      throw ApiError(404, "There is nothing at " + request.path.substr(0, 200) + ".");
    if (!route) {
      HttpResponse response;
      response.status = 405;
      response.body = error_body(405, request.path + " takes " + allowed + ", not " + request.method + ".", {}, {});
      response.headers.emplace_back("Allow", allowed == "GET" ? "GET, HEAD, OPTIONS" : allowed + ", OPTIONS");
      exchange->respond(std::move(response));
      return;
    }
    if (!route->open)
      check_key(request);
    if (!route->on_pool) {
      answer(*route, request, exchange);
      return;
    }
    run_on_pool_([this, route, exchange, request = std::make_shared<HttpRequest>(std::move(request))] {
      answer(*route, *request, exchange);
    });
  } catch (const ApiError &e) {
    respond_error(*exchange, e);
  }
}

void Api::answer(const Route &route, const HttpRequest &request, const std::shared_ptr<Exchange> &exchange) {
  try {
    (this->*route.handler)(request, exchange);
  } catch (const ApiError &e) {
    respond_error(*exchange, e);
  } catch (const std::bad_alloc &) {
    log_error("out of memory while answering " + request.path);
    respond_error(*exchange, ApiError(503, "the server has not enough memory for this request"));
  } catch (const std::exception &e) {
    log_error("answering " + request.path + " failed: " + e.what());
    respond_error(*exchange, ApiError(500, std::string("the server failed: ") + e.what()));
  }
}

// Once per field, so that a log tells what clients want without drowning in it.
void Api::warn_unknown(const Fields &fields) {
  constexpr size_t kMostWarnings = 200;
  for (const auto &name : fields.unknown()) {
    std::lock_guard lock(mutex_);
    if (warned_fields_.size() < kMostWarnings && warned_fields_.insert(name.substr(0, 100)).second)
      log_warning("the request field '" + printable(name, 100) + "' is not known here and is ignored");
  }
}

void Api::chat(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange) {
  generate(request, exchange, true);
}

void Api::completions(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange) {
  generate(request, exchange, false);
}

void Api::generate(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange, bool is_chat) {
  if (draining_)
    throw ApiError(503, "the server is shutting down");
  const Json body = parse_body(request.body);
  Fields fields(body);
  GenerationRequest generation = read_generation(*model_, is_chat, fields);
  warn_unknown(fields);
  auto running = std::make_shared<Generation>(engine_, model_, std::move(generation), exchange, gate_, counts_);
  {
    std::lock_guard lock(mutex_);
    std::erase_if(generations_, [](const auto &g) { return g.expired(); });
    generations_.push_back(running);
  }
  running->start();
  if (ending_) // which may have come between
    running->shut_down();
}

Json Api::model_card() const {
  Json card;
  card["id"] = model_->name;
  card["object"] = "model";
  card["created"] = model_->created;
  card["owned_by"] = "llmrt";
  card["root"] = model_->name;
  card["parent"] = nullptr;
  card["max_model_len"] = model_->max_model_len;
  return card;
}

void Api::models(const HttpRequest &, const std::shared_ptr<Exchange> &exchange) {
  Json list;
  list["object"] = "list";
  list["data"] = Json::array({model_card()});
  respond(*exchange, list);
}

void Api::model(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange) {
  const std::string name = percent_decoded(request.path.substr(std::string_view("/v1/models/").size()));
  if (name != model_->name)
    throw ApiError(404, "The model '" + name.substr(0, 200) + "' does not exist; this server has '" + model_->name + "'.",
                   "model", "model_not_found");
  respond(*exchange, model_card());
}

// Healthy means that requests get on: a busy engine is healthy, one that stands still with work at hand is not.
void Api::health(const HttpRequest &, const std::shared_ptr<Exchange> &exchange) {
  const EngineStats stats = engine_.stats();
  if (!stats.fatal.empty())
    throw ApiError(503, "the engine is dead: " + stats.fatal);
  if (draining_)
    throw ApiError(503, "the server is shutting down");
  if (stats.seconds_since_progress > options_.stall_seconds)
    throw ApiError(503, "no step has finished for " + std::to_string(static_cast<int64_t>(stats.seconds_since_progress)) +
                            " seconds, with " + std::to_string(stats.running) + " requests running");
  respond(*exchange, {{"status", "ok"}, {"running", stats.running}, {"waiting", stats.waiting}});
}

void Api::metrics(const HttpRequest &, const std::shared_ptr<Exchange> &exchange) {
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = metrics_text(options_.metrics_prefix, model_->name, engine_.stats(), engine_.metrics(), *counts_);
  exchange->respond(std::move(response));
}

void Api::version(const HttpRequest &, const std::shared_ptr<Exchange> &exchange) {
  respond(*exchange, {{"version", options_.version}});
}

void Api::tokenize(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange) {
  const Json body = parse_body(request.body);
  Fields fields(body);
  check_model(*model_, fields);
  std::vector<int32_t> ids;
  if (fields.has("messages")) {
    std::string text = render_chat(*model_, fields);
    ids = encode(*model_, text, fields.boolean("add_special_tokens").value_or(false));
  } else {
    auto text = fields.string("prompt");
    if (!text)
      throw bad_field("prompt", "'prompt' or 'messages' is missing");
    ids = encode(*model_, *text, fields.boolean("add_special_tokens").value_or(true));
  }
  const bool with_texts = fields.boolean("return_token_strs").value_or(false);
  warn_unknown(fields);
  Json out;
  out["count"] = ids.size();
  out["max_model_len"] = model_->max_model_len;
  out["tokens"] = ids;
  if (with_texts) {
    Json texts = Json::array();
    for (int32_t id : ids)
      texts.push_back(model_->tokenizer->id_to_token(id).value_or(""));
    out["token_strs"] = std::move(texts);
  }
  respond(*exchange, out);
}

void Api::detokenize(const HttpRequest &request, const std::shared_ptr<Exchange> &exchange) {
  const Json body = parse_body(request.body);
  Fields fields(body);
  check_model(*model_, fields);
  if (!fields.has("tokens"))
    throw bad_field("tokens", "'tokens' is missing");
  const auto ids = fields.token_ids("tokens", SIZE_MAX);
  check_vocabulary(*model_, ids, "tokens");
  warn_unknown(fields);
  if (!model_->tokenizer)
    throw ApiError(400, "the plan carries no tokenizer, so token ids have no text", "tokens");
  respond(*exchange, {{"prompt", model_->tokenizer->decode(ids, false)}});
}

void Api::drain() { draining_ = true; }

void Api::shut_down_running() {
  ending_ = true;
  std::vector<std::weak_ptr<Generation>> generations;
  {
    std::lock_guard lock(mutex_);
    generations.swap(generations_);
  }
  for (const auto &weak : generations)
    if (auto generation = weak.lock())
      generation->shut_down();
}

} // namespace llmrt::serve
