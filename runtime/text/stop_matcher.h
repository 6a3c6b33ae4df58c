// Watches streamed text for stop strings, wherever the pieces are cut. Text comes out as soon as it can
// no longer be the beginning of a stop string; nothing of a stop string ever leaks, and finish() returns
// the tail that turned out not to be one. Copies share what was made of the strings: of many choices with
// the same ones, each takes a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::text {

class StopMatcher {
public:
  // Empty stop strings are ignored. `include_stop`: the text returned ends with the stop string.
  explicit StopMatcher(const std::vector<std::string> &stops, bool include_stop = false);

  struct Result {
    std::string text;  // to be emitted now
    bool stopped;      // a stop string is complete; everything behind it is dropped
    size_t stop_index; // which one, if stopped
  };

  // The match that is complete first wins, and of those that are complete at the same character the
  // longest: so the outcome does not depend on how the text is cut. After a stop, returns nothing more.
  Result push(std::string_view text);

  // The text held back; "" after a stop. The matcher then starts over.
  std::string finish();

  bool stopped() const { return stopped_; }

private:
  class Automaton;

  std::shared_ptr<const Automaton> automaton_;
  bool include_stop_;
  bool stopped_ = false;
  uint32_t state_ = 0;
  std::string held_; // exactly the text of state_
};

} // namespace llmrt::text
