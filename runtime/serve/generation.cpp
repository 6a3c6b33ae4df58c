// From engine events to answers (see generation.h).
#include "runtime/serve/generation.h"

#include "runtime/serve/api_error.h"
#include "runtime/serve/log.h"

#include <chrono>

namespace llmrt::serve {

using Json = nlohmann::ordered_json;

void EventGate::pass(Exchange &exchange, std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (open_)
    exchange.post(std::move(work));
}

void EventGate::close() {
  std::lock_guard lock(mutex_);
  open_ = false;
}

Generation::Generation(Engine &engine, std::shared_ptr<const Model> model, GenerationRequest request,
                       std::shared_ptr<Exchange> exchange, std::shared_ptr<EventGate> gate,
                       std::shared_ptr<GenerationCounts> counts)
    : engine_(engine), model_(std::move(model)), request_(std::move(request)), exchange_(std::move(exchange)),
      gate_(std::move(gate)), counts_(std::move(counts)) {
  head_.id = make_id(request_.chat);
  head_.created = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  head_.model = model_->name;
  head_.chat = request_.chat;
  const size_t count = request_.prompts.size() * request_.n;
  const text::StopMatcher matcher(request_.stops, request_.include_stop);
  for (size_t i = 0; i < count; ++i)
    choices_.push_back({std::make_unique<ChoiceText>(*model_, request_, prompt_of(i), matcher), {}});
  ids_.resize(count, 0);
  unfinished_ = count;
  ++counts_->running;
}

Generation::~Generation() { --counts_->running; }

void Generation::submit(size_t index) {
  const Prompt &prompt = prompt_of(index);
  EngineRequest request;
  request.prompt = prompt.ids;
  request.sampling = request_.sampling;
  request.sampling.max_tokens = prompt.max_tokens;
  // Each of several choices draws its own numbers; the same prompt beside others draws what it would alone.
  if (request.sampling.seed)
    *request.sampling.seed += index % request_.n;
  request.on_event = [self = shared_from_this(), index](RequestEvent &&event) {
    self->gate_->pass(*self->exchange_, [self, index, event = std::make_shared<RequestEvent>(std::move(event))] {
      self->on_event(index, std::move(*event));
    });
  };
  SubmitError error = SubmitError::None;
  std::string message;
  const uint64_t id = engine_.submit(std::move(request), error, message);
  switch (error) {
  case SubmitError::None:
    break;
  case SubmitError::QueueFull:
    throw ApiError(429, message, {}, "queue_full");
  case SubmitError::Invalid:
    throw ApiError(400, message);
  case SubmitError::Draining:
  case SubmitError::Dead:
    throw ApiError(503, message);
  }
  std::lock_guard lock(mutex_);
  ids_[index] = id;
  if (cancelled_)
    engine_.cancel(id);
}

void Generation::start() {
  // A client that goes away takes its requests with it, from the first moment on.
  exchange_->on_gone([weak = weak_from_this()] {
    if (auto self = weak.lock()) {
      self->count_aborted();
      self->answered_ = true;
      self->cancel_engine();
    }
  });
  submit_all();
  exchange_->post([self = shared_from_this()] { self->begin(); });
}

void Generation::submit_all() {
  bool none_needed = request_.sampling.prompt_logprobs < 0;
  for (const Prompt &prompt : request_.prompts)
    none_needed = none_needed && prompt.max_tokens == 0;
  if (none_needed) { // nothing is to be produced, so there is nothing to compute
    for (size_t i = 0; i < choices_.size(); ++i) {
      RequestEvent event;
      event.finish = FinishReason::Length;
      early_.emplace_back(i, std::move(event));
    }
    return;
  }
  try {
    for (size_t i = 0; i < choices_.size(); ++i)
      submit(i);
  } catch (...) {
    exchange_->post([self = shared_from_this()] { self->answered_ = true; });
    cancel_engine(); // those before it
    throw;
  }
}

// The engine has taken every choice: the answer may begin.
void Generation::begin() {
  begun_ = true;
  if (answered_)
    return;
  if (request_.stream) {
    exchange_->start_stream();
    std::string events;
    if (request_.chat)
      for (size_t i = 0; i < choices_.size(); ++i)
        events += role_event(head_, request_, i, prompt_of(i));
    if (!events.empty())
      exchange_->write(std::move(events));
  }
  for (auto &[index, event] : std::exchange(early_, {}))
    on_event(index, std::move(event));
}

void Generation::cancel_engine() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (uint64_t id : ids_)
    if (id != 0)
      engine_.cancel(id);
}

void Generation::shut_down() {
  cancel_engine();
  exchange_->post([self = shared_from_this()] { self->fail(503, "the server is shutting down"); });
}

void Generation::on_event(size_t index, RequestEvent &&event) {
  if (!begun_) {
    early_.emplace_back(index, std::move(event));
    return;
  }
  Choice &choice = choices_[index];
  if (event.finish) {
    std::lock_guard lock(mutex_);
    ids_[index] = 0;
  }
  if (answered_ || choice.text->finished())
    return;
  Piece piece = choice.text->take(std::move(event));
  if (choice.text->stopped_by_string()) {
    std::lock_guard lock(mutex_);
    if (ids_[index] != 0)
      engine_.cancel(ids_[index]);
  }
  if (choice.text->finished() && choice.text->reason() == FinishReason::Error) {
    log_error("request " + head_.id + " failed: " + choice.text->error());
    ++counts_->error;
    --unfinished_;
    fail(500, choice.text->error());
    return;
  }
  if (request_.stream)
    stream_piece(index, piece);
  else
    keep_piece(index, std::move(piece));
  if (choice.text->finished())
    choice_finished(choice.text->reason());
}

void Generation::stream_piece(size_t index, const Piece &piece) {
  const ChoiceText &text = *choices_[index].text;
  // A token that completes no character is not worth a chunk, unless its id or its probability is asked for.
  if (piece.text.empty() && !text.finished() && piece.logged.empty() &&
      !(request_.return_token_ids && !piece.token_ids.empty()))
    return;
  const bool first = text.completion_tokens() == piece.token_ids.size();
  exchange_->write(piece_event(*model_, head_, request_, index, piece, text.finished() ? &text : nullptr,
                               first && !request_.chat ? &prompt_of(index) : nullptr));
}

void Generation::keep_piece(size_t index, Piece &&piece) {
  Piece &all = choices_[index].everything;
  all.text += piece.text;
  all.token_ids.insert(all.token_ids.end(), piece.token_ids.begin(), piece.token_ids.end());
  all.logged.insert(all.logged.end(), std::make_move_iterator(piece.logged.begin()),
                    std::make_move_iterator(piece.logged.end()));
}

// What is unfinished ends here, with the answer or without one.
void Generation::count_aborted() {
  if (!answered_)
    counts_->abort += unfinished_;
}

void Generation::choice_finished(FinishReason reason) {
  switch (reason) {
  case FinishReason::Stop:
    ++counts_->stop;
    break;
  case FinishReason::Length:
    ++counts_->length;
    break;
  case FinishReason::Cancelled:
    ++counts_->abort;
    break;
  case FinishReason::Error:
    ++counts_->error;
    break;
  }
  if (--unfinished_ == 0)
    complete();
}

Usage Generation::usage() const {
  Usage usage;
  for (size_t i = 0; i < choices_.size(); ++i) {
    usage.completion_tokens += choices_[i].text->completion_tokens();
    if (i % request_.n == 0) { // a prompt counts once, whatever the number of its choices
      usage.prompt_tokens += prompt_of(i).ids.size();
      usage.cached_tokens += choices_[i].text->cached_tokens();
    }
  }
  return usage;
}

void Generation::complete() {
  if (std::exchange(answered_, true))
    return;
  if (request_.stream) {
    exchange_->write((request_.include_usage ? usage_event(head_, usage()) : std::string()) + done_event());
    exchange_->finish();
    return;
  }
  Json list = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i)
    list.push_back(choice_json(*model_, request_, i, prompt_of(i), *choices_[i].text, choices_[i].everything));
  HttpResponse response;
  response.body = dump(answer_json(head_, request_, std::move(list), usage()));
  exchange_->respond(std::move(response));
}

// An error before the stream has begun is a status; later it is an event.
void Generation::fail(int status, const std::string &message) {
  count_aborted();
  if (std::exchange(answered_, true))
    return;
  cancel_engine();
  if (request_.stream && begun_) {
    exchange_->write(error_event(status, message) + done_event());
    exchange_->finish();
    return;
  }
  HttpResponse response;
  response.status = status;
  response.body = error_body(status, message, {}, {});
  exchange_->respond(std::move(response));
}

} // namespace llmrt::serve
