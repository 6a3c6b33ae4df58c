// Interval bookkeeping for the dataflow proofs; every operation is logarithmic, or linear in what it returns.
#include "runtime/plan/producers.h"

#include <algorithm>

namespace llmrt::plan {

std::vector<Segment> merge_segments(std::vector<Segment> segments) {
  std::sort(segments.begin(), segments.end(), [](const Segment &a, const Segment &b) { return a.begin < b.begin; });
  std::vector<Segment> out;
  for (const Segment &s : segments) {
    if (!out.empty() && out.back().tensor == s.tensor && out.back().begin + out.back().count == s.begin &&
        out.back().source + out.back().count == s.source)
      out.back().count += s.count;
    else
      out.push_back(s);
  }
  return out;
}

WeightMap map_weight(const Plan &plan, const Weight &weight) {
  WeightMap map;
  bool by_rows = true, by_cols = true;
  uint32_t first = weight.parts()->Get(0)->tensor();
  for (const WeightPart *part : *weight.parts()) {
    by_rows &= part->dst_col() == 0 && part->cols() == weight.cols();
    by_cols &= part->dst_row() == 0 && part->rows() == weight.rows() && part->tensor() == first;
    map.partial |= weight.cols() != plan.tensors()->Get(part->tensor())->cols();
  }
  if (by_rows) {
    for (const WeightPart *part : *weight.parts())
      map.rows.push_back({part->dst_row(), part->rows(), part->tensor(), part->row()});
    map.rows = merge_segments(std::move(map.rows));
  }
  if (by_cols) {
    for (const WeightPart *part : *weight.parts())
      map.cols.push_back({part->dst_col(), part->cols(), part->tensor(), part->col()});
    map.cols = merge_segments(std::move(map.cols));
  }
  return map;
}

void Producers::write(const View &view, uint32_t op, bool partial) {
  auto &pieces = buffers_[view.buffer()];
  uint64_t begin = view.col(), end = begin + view.cols();
  auto at = pieces.lower_bound(begin);
  if (at != pieces.begin()) {
    auto before = std::prev(at);
    if (before->second.end > begin) {
      Entry tail = before->second;
      before->second.end = begin;
      if (tail.end > end)
        pieces.emplace(end, tail);
    }
  }
  while (at != pieces.end() && at->first < end) {
    Entry entry = at->second;
    at = pieces.erase(at);
    if (entry.end > end)
      pieces.emplace(end, entry);
  }
  pieces[begin] = {end, op, partial};
}

std::optional<std::vector<Producers::Piece>> Producers::read(const View &view, size_t most) const {
  const auto &pieces = buffers_[view.buffer()];
  uint64_t begin = view.col(), end = begin + view.cols();
  std::vector<Piece> out;
  auto at = pieces.upper_bound(begin);
  if (at == pieces.begin())
    return std::nullopt;
  --at;
  while (begin < end) {
    if (at == pieces.end() || at->first > begin || at->second.end <= begin || out.size() == most)
      return std::nullopt;
    uint64_t stop = std::min(end, at->second.end);
    out.push_back({begin, stop, at->second.op, at->second.partial});
    begin = stop;
    ++at;
  }
  return out;
}

} // namespace llmrt::plan
