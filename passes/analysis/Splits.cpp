#include "passes/analysis/Splits.h"

#include <algorithm>

using namespace llmc;

llvm::SmallVector<Extent> llmc::splitDimension(int64_t total, int64_t parts, int64_t unit) {
  while (unit > 1 && (total + unit - 1) / unit < parts)
    unit /= 2;
  int64_t units = (total + unit - 1) / unit, begin = 0;
  llvm::SmallVector<Extent> extents;
  for (int64_t i = 0; i < parts; ++i) {
    int64_t size = (units / parts + (i < units % parts)) * unit;
    size = std::min(size, total - begin); // the last unit may be a short one
    extents.push_back({begin, size});
    begin += size;
  }
  return extents;
}

llvm::SmallVector<HeadExtents> llmc::splitHeads(int64_t qHeads, int64_t kvHeads, int64_t parts) {
  int64_t group = qHeads / kvHeads;
  llvm::SmallVector<HeadExtents> heads;
  if (kvHeads >= parts) {
    for (Extent kv : splitDimension(kvHeads, parts, 1))
      heads.push_back({{kv.begin * group, kv.size * group}, kv});
    return heads;
  }
  for (Extent q : splitDimension(qHeads, parts, 1)) {
    int64_t first = q.begin / group, last = (q.end() - 1) / group;
    heads.push_back({q, {first, last - first + 1}});
  }
  return heads;
}

// The largest legal tp and, for it, why it is the largest.
static int64_t maxTp(const SplitLimits &limits) { return std::min({limits.qHeads, limits.ffn, limits.vocab}); }

std::string llmc::legalPairs(const SplitLimits &limits) {
  std::string text;
  for (int64_t tp = 1; tp <= std::min(maxTp(limits), limits.devices); ++tp) {
    int64_t pp = std::min(limits.layers, limits.devices / tp);
    if (pp < 1)
      continue;
    text += (text.empty() ? "tp " : ", tp ") + std::to_string(tp) + " with pp " +
            (pp == 1 ? "1" : "1-" + std::to_string(pp));
  }
  return text;
}

std::string llmc::explainIllegalSplit(const SplitLimits &limits, int64_t tp, int64_t pp) {
  auto number = [](int64_t n) { return std::to_string(n); };
  std::string why;
  if (tp < 1 || pp < 1)
    why = "tp " + number(tp) + " and pp " + number(pp) + " must both be at least 1";
  else if (tp > limits.qHeads)
    why = number(limits.qHeads) + " query heads cannot be spread over " + number(tp) + " ranks (--tp " + number(tp) + ")";
  else if (tp > limits.ffn)
    why = number(limits.ffn) + " feed-forward columns cannot be spread over " + number(tp) + " ranks (--tp " +
          number(tp) + ")";
  else if (tp > limits.vocab)
    why = "a vocabulary of " + number(limits.vocab) + " cannot be spread over " + number(tp) + " ranks (--tp " +
          number(tp) + ")";
  else if (pp > limits.layers)
    why = number(limits.layers) + " layers cannot be cut into " + number(pp) + " stages (--pp " + number(pp) + ")";
  else if (tp > limits.devices / pp)
    why = "tp " + number(tp) + " x pp " + number(pp) + " needs " + number(tp * pp) + " devices, but the topology has " +
          number(limits.devices);
  else
    return "";
  return why + "; legal on these " + number(limits.devices) + " devices: " + legalPairs(limits);
}
