// The order of operations is that of params.h. The row is copied only if a penalty, a bias or a ban changes
// it, and exponentials are taken only of what the filters may keep.
#include "runtime/sample/sampler.h"

#include "runtime/sample/philox.h"
#include "runtime/sample/row_ops.h"
#include "runtime/support/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llmrt::sample {

static constexpr float kGreedyBelow = 1e-5f;
static constexpr float kNegInf = -std::numeric_limits<float>::infinity();

// The row's maximum, with the block maxima left in the scratch.
static float checked_max(std::span<const float> row, Scratch &scratch, bool barred) {
  scratch.block_max.resize(num_blocks(row.size()));
  RowMax max = row_max(row.data(), row.size(), scratch.block_max.data());
  if (max.has_nan) {
    size_t at = 0;
    while (at < row.size() && row[at] == row[at])
      ++at;
    throw Error("the model produced a logit that is not a number (NaN, token " + std::to_string(at) +
                "); its weights are damaged or its activations overflowed, try --dtype float32 or bfloat16");
  }
  if (max.value == std::numeric_limits<float>::infinity())
    throw Error("the model produced an infinite logit (token " +
                std::to_string(first_equal(row.data(), row.size(), max.value, scratch.block_max.data())) +
                "); its activations overflowed, try --dtype float32 or bfloat16");
  if (max.value == kNegInf)
    throw Error(barred
                    ? "logit_bias, min_tokens and the stop tokens together bar every token of the vocabulary"
                    : "the model gave every token the logit -infinity; its weights are damaged");
  return max.value;
}

Sampler::Sampler(const SamplingParams &p, uint64_t seed, std::span<const int32_t> prompt,
                 std::span<const int32_t> end_tokens)
    : temperature_(p.temperature), top_p_(p.top_p), min_p_(p.min_p), presence_(p.presence_penalty),
      frequency_(p.frequency_penalty), repetition_(p.repetition_penalty), top_k_(std::max(p.top_k, 0)),
      min_tokens_(p.min_tokens), seed_(seed), bias_(p.logit_bias) {
  counts_ = presence_ != 0 || frequency_ != 0 || repetition_ != 1;
  if (min_tokens_ > 0)
    end_tokens_.assign(end_tokens.begin(), end_tokens.end());
  if (repetition_ != 1)
    for (int32_t id : prompt)
      if (index_.try_emplace(id, static_cast<uint32_t>(seen_.size())).second)
        seen_.push_back({id, 0});
}

void Sampler::accept(int32_t token) {
  ++output_tokens_;
  if (!counts_)
    return;
  auto [it, added] = index_.try_emplace(token, static_cast<uint32_t>(seen_.size()));
  if (added)
    seen_.push_back({token, 0});
  ++seen_[it->second].in_output;
}

std::optional<Sampler::Draw> Sampler::device_draw() const {
  if (counts_ || !bias_.empty() || min_tokens_ > 0)
    return std::nullopt;
  return Draw{temperature_ < kGreedyBelow ? 0.0f : temperature_, top_p_, min_p_, top_k_, seed_, output_tokens_};
}

bool Sampler::changes_logits() const {
  return !bias_.empty() || !seen_.empty() || (output_tokens_ < min_tokens_ && !end_tokens_.empty());
}

void Sampler::apply_penalties(std::span<float> row) const {
  for (auto [id, bias] : bias_)
    row[id] += bias;
  if (output_tokens_ < min_tokens_)
    for (int32_t id : end_tokens_)
      row[id] = kNegInf;
  for (const Seen &s : seen_) {
    float &x = row[s.id];
    if (repetition_ != 1)
      x = x > 0 ? x / repetition_ : x * repetition_;
    if (s.in_output > 0)
      x = x - frequency_ * static_cast<float>(s.in_output) - presence_;
  }
}

// The first candidate at which the running sum of weights passes u × sum.
static int32_t draw(const std::vector<Candidate> &candidates, double u) {
  double sum = 0;
  for (const Candidate &c : candidates)
    sum += c.weight;
  double left = u * sum;
  int32_t last = candidates.front().id;
  for (const Candidate &c : candidates) {
    if (c.weight <= 0)
      continue;
    last = c.id;
    left -= c.weight;
    if (left < 0)
      break;
  }
  return last;
}

// The same over the weights of a whole row, of which those >= `threshold` take part, and `extra` besides (ids
// ascending, all below the threshold). block_sum holds the sums of what takes part.
static int32_t draw_row(std::span<const float> weights, const std::vector<double> &block_sum, double sum,
                        double u, float threshold, std::span<const Candidate> extra) {
  double left = u * sum;
  const size_t blocks = num_blocks(weights.size());
  size_t block = 0;
  for (size_t b = 0; b < blocks; ++b) {
    if (block_sum[b] <= 0)
      continue;
    block = b; // rounding may leave a little over: then the last block that counts has it
    if (left < block_sum[b])
      break;
    left -= block_sum[b];
  }
  const size_t begin = block * kBlock, end = std::min(weights.size(), begin + kBlock);
  auto next = std::lower_bound(extra.begin(), extra.end(), static_cast<int32_t>(begin),
                               [](const Candidate &c, int32_t id) { return c.id < id; });
  size_t last = begin;
  for (size_t i = begin; i < end; ++i) {
    const bool is_extra = next != extra.end() && static_cast<size_t>(next->id) == i;
    next += is_extra;
    if (weights[i] <= 0 || (weights[i] < threshold && !is_extra))
      continue;
    last = i;
    left -= weights[i];
    if (left < 0)
      break;
  }
  return static_cast<int32_t>(last);
}

// Draws from the fewest best tokens whose weights reach top_p of `total`. The weight at which they end is
// closed in on by whole-row sums first, so that only the tokens in a narrow band have to be ordered.
static int32_t draw_top_p(std::span<const float> row, std::span<const float> weights, double top_p,
                          double total, double u, Scratch &scratch) {
  const size_t n = row.size();
  const double target = top_p * total;
  // Tokens lighter than `low` weigh, all together, less than what top_p may drop. None is as heavy as `high`.
  float low = static_cast<float>((1 - top_p) * total / static_cast<double>(n) * 0.999), high = 1.001f;
  double above = 0; // weight of the tokens >= high: all of them are kept
  for (int pass = 0; pass < 9; ++pass) {
    const float middle = std::sqrt(low * high);
    if (!(middle > low && middle < high))
      break;
    const double mass = row_mass(weights.data(), n, middle, scratch.block_sum.data());
    if (mass >= target) {
      low = middle;
    } else {
      high = middle;
      above = mass;
    }
  }
  auto &band = scratch.candidates;
  band.clear();
  row_mass(weights.data(), n, low, scratch.block_sum.data());
  for (size_t b = 0; b < num_blocks(n); ++b) {
    if (scratch.block_sum[b] <= 0)
      continue;
    for (size_t i = b * kBlock, end = std::min(n, i + kBlock); i < end; ++i)
      if (weights[i] >= low && weights[i] < high)
        band.push_back({row[i], static_cast<int32_t>(i), weights[i]});
  }
  keep_mass(band, target - above, scratch);
  double sum = row_mass(weights.data(), n, high, scratch.block_sum.data());
  for (const Candidate &c : band) {
    scratch.block_sum[static_cast<size_t>(c.id) / kBlock] += c.weight;
    sum += c.weight;
  }
  return draw_row(weights, scratch.block_sum, sum, u, high, band);
}

int32_t Sampler::sample(std::span<const float> logits, Scratch &scratch) const {
  std::span<const float> row = logits;
  const bool changed = changes_logits();
  if (changed) {
    scratch.row.assign(logits.begin(), logits.end());
    apply_penalties(scratch.row);
    row = scratch.row;
  }
  const size_t n = row.size();
  const float max = checked_max(row, scratch, changed);
  const float *block_max = scratch.block_max.data();
  if (temperature_ < kGreedyBelow)
    return static_cast<int32_t>(first_equal(row.data(), n, max, block_max));

  const float inv_t = 1.0f / temperature_;
  const double u = uniform(seed_, output_tokens_);
  auto &candidates = scratch.candidates;
  double total = 0; // weight of all that min_p and top_k left; top_p takes its share of it
  if (top_k_ > 0 && static_cast<size_t>(top_k_) < n) {
    select_top_k(row.data(), n, block_max, static_cast<size_t>(top_k_), candidates, scratch);
  } else if (min_p_ > 0) {
    // A little low; the exact comparison follows below.
    const double threshold = max + temperature_ * (std::log(static_cast<double>(min_p_)) - 1e-3);
    select_at_least(row.data(), n, block_max,
                    static_cast<float>(std::max<double>(threshold, std::numeric_limits<float>::lowest())),
                    candidates);
  } else {
    scratch.weights.resize(n);
    scratch.block_sum.resize(num_blocks(n));
    total = row_exp(row.data(), n, max, inv_t, scratch.weights.data(), scratch.block_sum.data());
    const std::span<const float> weights(scratch.weights.data(), n);
    if (top_p_ >= 1)
      return draw_row(weights, scratch.block_sum, total, u, 0, {});
    return draw_top_p(row, weights, top_p_, total, u, scratch);
  }

  for (Candidate &c : candidates)
    c.weight = exp_one(c.x, max, inv_t);
  if (min_p_ > 0)
    std::erase_if(candidates, [&](const Candidate &c) { return c.weight < min_p_; });
  if (top_p_ < 1) {
    for (const Candidate &c : candidates)
      total += c.weight;
    keep_mass(candidates, static_cast<double>(top_p_) * total, scratch);
  }
  return draw(candidates, u);
}

TokenLogprobs token_logprobs(std::span<const float> logits, int32_t token, int32_t top, Scratch &scratch) {
  const size_t n = logits.size();
  if (token < 0 || static_cast<size_t>(token) >= n)
    throw Error("token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(n));
  const float max = checked_max(logits, scratch, false);
  scratch.block_sum.resize(num_blocks(n));
  const double sum = row_exp(logits.data(), n, max, 1.0f, nullptr, scratch.block_sum.data());
  const double log_sum = static_cast<double>(max) + std::log(sum);
  TokenLogprobs out;
  const float x = logits[token];
  out.logprob = static_cast<float>(x - log_sum);
  out.rank = static_cast<int32_t>(1 + count_better(logits.data(), n, x, static_cast<size_t>(token)));
  if (top > 0) {
    select_top_k(logits.data(), n, scratch.block_max.data(), static_cast<size_t>(top), scratch.candidates,
                 scratch);
    std::sort(scratch.candidates.begin(), scratch.candidates.end(), better);
    out.top.reserve(scratch.candidates.size());
    for (const Candidate &c : scratch.candidates)
      out.top.emplace_back(c.id, static_cast<float>(c.x - log_sum));
  }
  return out;
}

} // namespace llmrt::sample
