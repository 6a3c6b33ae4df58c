// Kernels on rows: embedding, norms, sums, activations, copies.
#pragma once

#include "kernels/cuda/activation.h"
#include "kernels/cuda/dtype.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llmrt::cuda {

struct Embedding {
  void *out;            // [T, H] act, row stride ld_out
  int64_t ld_out;
  const void *table;    // [vocab_count, H] of `weight`
  const int32_t *ids;   // [T]
  int64_t T, H;
  int64_t vocab_begin, vocab_count; // rows outside give zeros
  float scale;
  DType act, weight;
};
void embedding(const Embedding &p, cudaStream_t stream);

struct RmsNorm {
  void *out;            // [T, H] act
  int64_t ld_out;
  const void *input;    // [T, H] act
  int64_t ld_input;
  const void *weight;   // [H] f32
  int64_t T, H;
  float eps, weight_offset;
  DType act;
};
// out = input / rms(input) * (weight + weight_offset); sums in f32.
void rms_norm(const RmsNorm &p, cudaStream_t stream);

struct AddRmsNorm {
  void *out;            // [T, H] act
  int64_t ld_out;
  void *residual;       // [T, H] act, += input
  int64_t ld_residual;
  const void *input;    // [T, H] act
  int64_t ld_input;
  const void *weight;   // [H] f32
  int64_t T, H;
  float eps, weight_offset;
  DType act;
};
// residual += input; out = rms_norm of the sum as it was before rounding to `act`.
void add_rms_norm(const AddRmsNorm &p, cudaStream_t stream);

struct Add {
  void *residual;       // [T, H] act, += input
  int64_t ld_residual;
  const void *input;    // [T, H] act
  int64_t ld_input;
  int64_t T, H;
  DType act;
};
void add(const Add &p, cudaStream_t stream);

struct GatedAct {
  void *out;            // [T, F] act
  int64_t ld_out;
  const void *gate, *up; // [T, F] act each
  int64_t ld_gate, ld_up;
  int64_t T, F;
  Activation kind;
  DType act;
};
void gated_act(const GatedAct &p, cudaStream_t stream);

struct SelectRows {
  void *out;            // [R, H] act
  int64_t ld_out;
  const void *input;    // [T, H] act
  int64_t ld_input;
  const int32_t *rows;  // [R] indices into T
  int64_t R, H;
  DType act;
};
void select_rows(const SelectRows &p, cudaStream_t stream);

// Copies rows of [rows, bytes] between pitched buffers.
void copy_rows(void *to, int64_t to_stride_bytes, const void *from, int64_t from_stride_bytes, int64_t rows, int64_t bytes,
               cudaStream_t stream);

} // namespace llmrt::cuda
