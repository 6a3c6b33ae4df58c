// Aho-Corasick over bytes. Stop strings are UTF-8, so a prefix of one starts at a character border and the
// text in front of it is whole.
#include "runtime/text/stop_matcher.h"

#include <algorithm>

namespace llmrt::text {

StopMatcher::StopMatcher(const std::vector<std::string> &stops, bool include_stop)
    : nodes_(1), include_stop_(include_stop) {
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
    uint32_t node = order[i];
    for (auto [byte, next] : nodes_[node].children) {
      order.push_back(next);
      if (node != 0) {
        uint32_t fail = nodes_[node].fail;
        while (fail != 0 && child(fail, byte) == 0)
          fail = nodes_[fail].fail;
        nodes_[next].fail = child(fail, byte);
      }
      if (nodes_[next].stop < 0)
        nodes_[next].stop = nodes_[nodes_[next].fail].stop;
    }
  }
}

uint32_t StopMatcher::child(uint32_t node, unsigned char byte) const {
  for (auto [b, next] : nodes_[node].children)
    if (b == byte)
      return next;
  return 0;
}

StopMatcher::Result StopMatcher::push(std::string_view text) {
  if (stopped_)
    return {"", true, 0};
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    while (state_ != 0 && child(state_, byte) == 0)
      state_ = nodes_[state_].fail;
    state_ = child(state_, byte);
    int32_t stop = nodes_[state_].stop;
    if (stop < 0)
      continue;
    auto index = static_cast<size_t>(stop);
    std::string all = held_ + std::string(text.substr(0, i + 1));
    if (!include_stop_)
      all.resize(all.size() - lengths_[index]);
    held_.clear();
    state_ = 0;
    stopped_ = true;
    return {std::move(all), true, index};
  }
  std::string all = std::move(held_);
  all += text;
  size_t keep = nodes_[state_].depth;
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
