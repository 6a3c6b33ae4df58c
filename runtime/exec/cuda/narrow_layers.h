// Layers of narrow models at decode: two launches each instead of one an op or product (kernels/cuda/narrow.h).
//
// Half a layer, its attention or its feed-forward, leaves parts of its last product. Halves one behind the other are a chain:
// each adds the parts of the one before to the residual, and the last one's are added by a launch of their own.
#pragma once

#include "kernels/cuda/narrow.h"
#include "runtime/exec/cuda/program.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace llmrt::exec::cuda {

using NarrowHalf = std::variant<llmrt::cuda::NarrowAttention, llmrt::cuda::NarrowFeedForward>;

class NarrowChain {
public:
  // `rows` of the plan's choice: steps of more are not for these launches. The residual is `residual`, [tokens, H], at the
  // beginning and at the end; `scratch` has bytes(), for this chain alone while it runs. Halves have weights, biases and what
  // stands in the plan; the rest is filled in here.
  NarrowChain(std::vector<NarrowHalf> halves, void *residual, int64_t ld, int64_t H, int64_t rows, std::byte *scratch);

  // What a chain needs, for any number of rows and halves of these KV heads.
  static size_t scratch_bytes(int64_t H);

  // Whether these launches do a step: a token of each of a few sequences, which have not too many keys.
  bool takes(const StepShape &shape) const;
  // One half of a step that it takes.
  void run(size_t half, const OpContext &context) const;

private:
  std::vector<NarrowHalf> halves_;
  std::vector<llmrt::cuda::NarrowShape> shapes_;
  void *residual_;
  int64_t ld_, H_, rows_;
};

// A half of a chain, as the ops that it stands for hold it.
struct NarrowPlace {
  std::shared_ptr<const NarrowChain> chain; // null: none
  size_t half = 0;

  bool takes(const StepShape &shape) const { return chain && chain->takes(shape); }
};

} // namespace llmrt::exec::cuda
