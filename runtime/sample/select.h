// Finding the few logits that a filter keeps without sorting the many that it drops. "Better" means a larger
// logit, or an equal one at a lower id; it is a total order, so every selection has one right answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmrt::sample {

struct Candidate {
  float x; // logit
  int32_t id;
  float weight; // exp((x - max) / temperature), where known
};

inline bool better(const Candidate &a, const Candidate &b) {
  return a.x > b.x || (a.x == b.x && a.id < b.id);
}

// Reusable memory of one thread; grows to the vocabulary once.
struct Scratch {
  std::vector<float> row; // a row under penalties
  std::vector<float> block_max;
  std::vector<double> block_sum;
  std::vector<float> weights;        // exp of a row
  std::vector<Candidate> candidates; // what the filters kept, ids ascending
  std::vector<Candidate> work;       // a copy to reorder
  std::vector<float> floats;
};

// out = the k best of x [n], ids ascending (fewer if n < k; -inf logits are never taken). block_max as
// row_max() gave.
void select_top_k(const float *x, size_t n, const float *block_max, size_t k, std::vector<Candidate> &out,
                  Scratch &scratch);

// out = every logit >= threshold, ids ascending.
void select_at_least(const float *x, size_t n, const float *block_max, float threshold,
                     std::vector<Candidate> &out);

// Keeps the fewest best candidates whose weights sum to at least `mass` (all, if they do not), ids ascending.
// At least one is kept.
void keep_mass(std::vector<Candidate> &candidates, double mass, Scratch &scratch);

} // namespace llmrt::sample
