// The sweep: rows from top to bottom; at each row where a box begins or ends, the tree says whether some column is
// covered by no box or by two.
#include "runtime/plan/tiling.h"

#include <algorithm>

namespace llmrt::plan {

namespace {

// Counts per column segment, with range add and the minimum and maximum over all segments.
class CountTree {
public:
  explicit CountTree(size_t segments) {
    size_t size = 1;
    while (size < segments)
      size *= 2;
    width_ = size;
    nodes_.resize(2 * size);
    for (size_t i = segments; i < size; ++i) // padding never matters
      nodes_[size + i] = {0, INT64_MAX / 2, INT64_MIN / 2};
    for (size_t i = size - 1; i > 0; --i)
      pull(i);
  }

  void add(size_t begin, size_t end, int64_t value) { add(1, 0, width_, begin, end, value); }
  int64_t min() const { return nodes_[1].min; }
  int64_t max() const { return nodes_[1].max; }

  // First segment whose count is the minimum (or the maximum) over all.
  size_t first_extreme(bool minimum) const {
    size_t node = 1;
    while (node < width_) {
      const Node &left = nodes_[2 * node], &right = nodes_[2 * node + 1];
      bool go_left = minimum ? left.min <= right.min : left.max >= right.max;
      node = 2 * node + (go_left ? 0 : 1);
    }
    return node - width_;
  }

private:
  struct Node {
    int64_t added = 0, min = 0, max = 0;
  };

  void pull(size_t i) {
    nodes_[i].min = std::min(nodes_[2 * i].min, nodes_[2 * i + 1].min) + nodes_[i].added;
    nodes_[i].max = std::max(nodes_[2 * i].max, nodes_[2 * i + 1].max) + nodes_[i].added;
  }

  void add(size_t node, size_t lo, size_t hi, size_t begin, size_t end, int64_t value) {
    if (end <= lo || hi <= begin)
      return;
    if (begin <= lo && hi <= end) {
      nodes_[node].added += value;
      nodes_[node].min += value;
      nodes_[node].max += value;
      return;
    }
    size_t middle = (lo + hi) / 2;
    add(2 * node, lo, middle, begin, end, value);
    add(2 * node + 1, middle, hi, begin, end, value);
    pull(node);
  }

  size_t width_ = 1;
  std::vector<Node> nodes_;
};

bool contains(const Box &box, uint64_t row, uint64_t col) {
  return row >= box.row && row - box.row < box.rows && col >= box.col && col - box.col < box.cols;
}

struct Event {
  uint64_t row;
  size_t box;
  bool begins;
};

} // namespace

std::optional<TilingFault> check_tiling(const std::vector<Box> &boxes, uint64_t rows, uint64_t cols,
                                        bool overlap_allowed) {
  std::vector<uint64_t> edges = {0, cols};
  std::vector<Event> events;
  events.reserve(2 * boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box &box = boxes[i];
    if (box.rows == 0 || box.cols == 0 || box.row > rows || box.rows > rows - box.row || box.col > cols ||
        box.cols > cols - box.col)
      return TilingFault{TilingFault::Outside, box.row, box.col, i, i};
    edges.push_back(box.col);
    edges.push_back(box.col + box.cols);
    events.push_back({box.row, i, true});
    events.push_back({box.row + box.rows, i, false});
  }
  if (boxes.empty())
    return TilingFault{TilingFault::Gap, 0, 0, 0, 0};
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return a.row != b.row ? a.row < b.row : a.begins != b.begins ? b.begins : a.box < b.box;
  });
  auto segment = [&](uint64_t col) {
    return size_t(std::lower_bound(edges.begin(), edges.end(), col) - edges.begin());
  };

  CountTree tree(edges.size() - 1);
  if (events.front().row != 0)
    return TilingFault{TilingFault::Gap, 0, 0, 0, 0};
  for (size_t i = 0; i < events.size();) {
    uint64_t row = events[i].row;
    for (; i < events.size() && events[i].row == row; ++i) {
      const Box &box = boxes[events[i].box];
      tree.add(segment(box.col), segment(box.col + box.cols), events[i].begins ? 1 : -1);
    }
    if (row == rows)
      break;
    if (tree.min() < 1)
      return TilingFault{TilingFault::Gap, row, edges[tree.first_extreme(true)], 0, 0};
    if (!overlap_allowed && tree.max() > 1) {
      TilingFault fault{TilingFault::Overlap, row, edges[tree.first_extreme(false)], boxes.size(), boxes.size()};
      for (size_t b = 0; b < boxes.size() && fault.b == boxes.size(); ++b)
        if (contains(boxes[b], row, fault.col))
          (fault.a == boxes.size() ? fault.a : fault.b) = b;
      return fault;
    }
  }
  return std::nullopt;
}

} // namespace llmrt::plan
