// All selections narrow the row by block maxima first, and then halve what is left with nth_element: linear
// time.
#include "runtime/sample/select.h"

#include "runtime/sample/row_ops.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace llmrt::sample {

void select_at_least(const float *x, size_t n, const float *block_max, float threshold,
                     std::vector<Candidate> &out) {
  out.clear();
  for (size_t b = 0; b < num_blocks(n); ++b) {
    if (!(block_max[b] >= threshold))
      continue;
    const size_t end = std::min(n, (b + 1) * kBlock);
    for (size_t i = b * kBlock; i < end; ++i)
      if (x[i] >= threshold)
        out.push_back({x[i], static_cast<int32_t>(i), 0});
  }
}

// Drops everything worse than `boundary`; the order stays.
static void keep_down_to(std::vector<Candidate> &candidates, const Candidate &boundary) {
  std::erase_if(candidates, [&](const Candidate &c) { return better(boundary, c); });
}

void select_top_k(const float *x, size_t n, const float *block_max, size_t k, std::vector<Candidate> &out,
                  Scratch &scratch) {
  out.clear();
  if (k == 0)
    return;
  // The k-th largest block maximum is a lower bound of the k-th best logit: that many logits reach it.
  float threshold = std::numeric_limits<float>::lowest();
  const size_t blocks = num_blocks(n);
  if (k <= blocks) {
    scratch.floats.assign(block_max, block_max + blocks);
    std::nth_element(scratch.floats.begin(), scratch.floats.begin() + (k - 1), scratch.floats.end(),
                     std::greater<float>());
    threshold = std::max(threshold, scratch.floats[k - 1]);
  }
  select_at_least(x, n, block_max, threshold, out);
  if (out.size() <= k)
    return;
  scratch.work = out;
  std::nth_element(scratch.work.begin(), scratch.work.begin() + (k - 1), scratch.work.end(), better);
  keep_down_to(out, scratch.work[k - 1]);
}

void keep_mass(std::vector<Candidate> &candidates, double mass, Scratch &scratch) {
  if (candidates.empty())
    return;
  auto &work = scratch.work;
  work = candidates;
  // Invariant: everything before `low` is better than the rest and kept, with sum `kept` < mass; the boundary
  // lies in [low, high), or everything is kept.
  size_t low = 0, high = work.size();
  double kept = 0;
  while (high - low > 1) {
    const size_t mid = low + (high - low) / 2;
    std::nth_element(work.begin() + low, work.begin() + mid, work.begin() + high, better);
    double upper = 0;
    for (size_t i = low; i < mid; ++i)
      upper += work[i].weight;
    if (kept + upper >= mass) {
      high = mid;
    } else {
      kept += upper;
      low = mid;
    }
  }
  keep_down_to(candidates, work[low]);
}

} // namespace llmrt::sample
