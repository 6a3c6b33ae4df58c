// Over bytes. Stop strings are UTF-8, so a prefix of one starts at a character border and the
// text in front of it is whole.
#include "runtime/text/stop_matcher.h"

#include <algorithm>

namespace llmrt::text {

// Aho and Corasick 1975, "Efficient string matching".
class StopMatcher::Automaton {
public:
  explicit Automaton(const std::vector<std::string> &stops);

  // The state after `byte`.
  uint32_t next(uint32_t state, unsigned char byte) const {
    while (state != 0 && child(state, byte) == 0)
      state = nodes_[state].fail;
    return child(state, byte);
  }
  size_t depth(uint32_t state) const { return nodes_[state].depth; }
  // The longest stop string that ends at a state; below 0: none.
  int32_t stop(uint32_t state) const { return nodes_[state].stop; }
  size_t length(size_t stop) const { return lengths_[stop]; }

private:
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> children;
    uint32_t fail = 0;
    uint32_t depth = 0;
    int32_t stop = -1;
  };
  uint32_t child(uint32_t node, unsigned char byte) const {
    for (auto [b, next] : nodes_[node].children)
      if (b == byte)
        return next;
    return 0;
  }

  std::vector<Node> nodes_;
  std::vector<size_t> lengths_;
};

StopMatcher::Automaton::Automaton(const std::vector<std::string> &stops) : nodes_(1) {
  for (size_t i = 0; i < stops.size(); ++i) {
    lengths_.push_back(stops[i].size());
    if (stops[i].empty())
      continue;
    uint32_t node = 0;
    for (char c : stops[i]) {
      auto byte = static_cast<unsigned char>(c);
      uint32_t next = child(node, byte);
      if (next == 0) {
        next = static_cast<uint32_t>(nodes_.size());
        nodes_.emplace_back();
        nodes_[next].depth = nodes_[node].depth + 1;
        nodes_[node].children.emplace_back(byte, next);
      }
      node = next;
    }
    if (nodes_[node].stop < 0)
      nodes_[node].stop = static_cast<int32_t>(i);
  }
  // Breadth first: the failure link of a child follows from those of shallower nodes.
  std::vector<uint32_t> order{0};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t node = order[i];
    for (auto [byte, below] : nodes_[node].children) {
      order.push_back(below);
      if (node != 0)
        nodes_[below].fail = next(nodes_[node].fail, byte);
      if (nodes_[below].stop < 0)
        nodes_[below].stop = nodes_[nodes_[below].fail].stop;
    }
  }
}

StopMatcher::StopMatcher(const std::vector<std::string> &stops, bool include_stop)
    : automaton_(std::make_shared<const Automaton>(stops)), include_stop_(include_stop) {}

StopMatcher::Result StopMatcher::push(std::string_view text) {
  if (stopped_)
    return {"", true, 0};
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    state_ = automaton_->next(state_, byte);
    const int32_t stop = automaton_->stop(state_);
    if (stop < 0)
      continue;
    auto index = static_cast<size_t>(stop);
    std::string all = held_ + std::string(text.substr(0, i + 1));
    if (!include_stop_)
      all.resize(all.size() - automaton_->length(index));
    held_.clear();
    state_ = 0;
    stopped_ = true;
    return {std::move(all), true, index};
  }
  std::string all = std::move(held_);
  all += text;
  const size_t keep = automaton_->depth(state_);
  held_ = all.substr(all.size() - keep);
  all.resize(all.size() - keep);
  return {std::move(all), false, 0};
}

std::string StopMatcher::finish() {
  std::string tail = std::move(held_);
  held_.clear();
  state_ = 0;
  stopped_ = false;
  return tail;
}

} // namespace llmrt::text
