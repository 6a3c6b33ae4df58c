// A generation in progress: one HTTP request, and the engine requests of all of its choices. Events from the engine
// are carried over to the connection's own sequence, where text is decoded and the answer is written.
#pragma once

#include "runtime/serve/choice_text.h"
#include "runtime/serve/exchange.h"
#include "runtime/serve/replies.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace llmrt::serve {

/// Passes engine events on to connections for as long as the server lives.
class EventGate {
public:
  /// Runs `work` on the exchange's sequence, unless the gate is closed.
  void pass(Exchange &exchange, std::function<void()> work);
  void close();

private:
  std::mutex mutex_;
  bool open_ = true;
};

/// How choices ended, and how many generations there are. Every choice that the engine took is counted once.
struct GenerationCounts {
  std::atomic<int64_t> running{0}; ///< generations that have not been answered and released yet
  std::atomic<uint64_t> stop{0}, length{0}, abort{0}, error{0};
};

class Generation : public std::enable_shared_from_this<Generation> {
public:
  Generation(Engine &engine, std::shared_ptr<const Model> model, GenerationRequest request,
             std::shared_ptr<Exchange> exchange, std::shared_ptr<EventGate> gate,
             std::shared_ptr<GenerationCounts> counts);
  ~Generation();

  /// Submits every choice. Throws ApiError if the engine refuses; then nothing is left running.
  void start();
  /// Ends it because the server does; a client that is still there is told so.
  void shut_down();

private:
  struct Choice {
    std::unique_ptr<ChoiceText> text;
    Piece everything; // for a whole answer
  };
  const Prompt &prompt_of(size_t index) const { return request_.prompts[index / request_.n]; }
  void submit(size_t index);
  void submit_all();
  void begin();
  void on_event(size_t index, RequestEvent &&event);
  void stream_piece(size_t index, const Piece &piece);
  void keep_piece(size_t index, Piece &&piece);
  void choice_finished(FinishReason reason);
  void count_aborted();
  void complete();
  void fail(int status, const std::string &message);
  void cancel_engine();
  Usage usage() const;

  Engine &engine_;
  const std::shared_ptr<const Model> model_;
  const GenerationRequest request_;
  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<EventGate> gate_;
  const std::shared_ptr<GenerationCounts> counts_;
  ReplyHead head_;

  // On the connection's sequence only:
  std::vector<Choice> choices_;
  size_t unfinished_ = 0;
  bool begun_ = false;    // all choices are submitted
  bool answered_ = false; // or the client is gone
  std::vector<std::pair<size_t, RequestEvent>> early_; // events that came before

  std::mutex mutex_; // guards what follows
  std::vector<uint64_t> ids_; // of the engine's requests; 0: not submitted yet, or finished
  bool cancelled_ = false;
};

} // namespace llmrt::serve
