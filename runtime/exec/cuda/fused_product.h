// A product and those of its neighbours in the program that one launch does with it, which depends on the number of rows.
#pragma once

#include "kernels/cuda/linear.h"
#include "kernels/cuda/rope.h"
#include "runtime/exec/cuda/narrow_layers.h"
#include "runtime/exec/cuda/products.h"
#include "runtime/exec/cuda/program.h"

#include <optional>

namespace llmrt::exec::cuda {

// What a product and its neighbours run with, pointers resolved. Fields that change from step to step are set by run().
struct ProductParts {
  llmrt::cuda::Linear linear;
  ProductRows rows;
  const void *bias_like_out = nullptr; // for the library's epilogue

  // The norm in front: what it reads, and with which weight; null where there is none that the product could do.
  const float *norm = nullptr;
  const void *norm_rows = nullptr;
  int64_t ld_norm_rows = 0;
  float eps = 0, norm_offset = 0;
  bool norm_is_free = false; // another launch does it in passing

  // What follows, one of these at most, and where add and gate leave their result.
  bool add = false;
  std::optional<llmrt::cuda::Activation> gate;
  std::optional<llmrt::cuda::Rope> rope;
  llmrt::cuda::KvAppend append{};
  void *result = nullptr;
  int64_t ld_result = 0;

  bool input_apart = false, norm_apart = false; // as in Neighbours
};

class FusedProduct {
public:
  explicit FusedProduct(const ProductParts &parts) : parts_(parts) {}

  const ProductParts &parts() const { return parts_; }
  // From now on, part of a half layer: its first product, which runs it, or its last.
  void join(const NarrowPlace &half, bool runs) { half_ = half, runs_half_ = runs; }

  // Whether, of so many rows in such a step, the product does the norm in front of it; what follows it. Those ops then have
  // nothing to do.
  bool takes_norm(int64_t rows, const StepShape &shape) const { return half_.takes(shape) || choose(rows).norm; }
  bool takes_next(int64_t rows, const StepShape &shape) const { return half_.takes(shape) || choose(rows).next; }

  void run(int64_t rows, const OpContext &context) const;

private:
  struct Choice {
    bool norm = false, next = false;
    bool wide = false; // the product and its gate in the kernel for large weights
  };
  Choice choose(int64_t rows) const;
  llmrt::cuda::Linear linear(Choice choice, int64_t rows) const;
  llmrt::cuda::LinearFusion fusion(Choice choice) const;

  ProductParts parts_;
  NarrowPlace half_;
  bool runs_half_ = false;
};

} // namespace llmrt::exec::cuda
