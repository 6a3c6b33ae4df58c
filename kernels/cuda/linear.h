// Products with weights.
#pragma once

#include "kernels/cuda/activation.h"
#include "kernels/cuda/dtype.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace llmrt::cuda {

struct KvAppend; // rope.h
struct Rope;

struct Linear {
  void *out;            // [M, N] of `out_type`, row stride ld_out
  int64_t ld_out;
  const void *input;    // [M, K] act, row stride ld_input
  int64_t ld_input;
  const void *weight;   // [N, K] of `weight_type`, dense, 16-byte aligned
  const float *bias;    // [N] or null
  int64_t M, N, K;
  DType act, weight_type, out_type;
};
// Products of few rows (decode): read the weight once at memory speed, or once for each 32 rows. Any M, N, K; f32
// accumulation. Beyond kSkinnyMaxRows rows others are faster (exec-select-kernels chooses). In f32 a row's result does not depend
// on M.
inline constexpr int kSkinnyMaxRows = 16;
void skinny_linear(const Linear &p, cudaStream_t stream);

// Products of up to kWideMaxRows rows on Hopper, for weights so large that every multiprocessor has enough of them
// (exec-select-kernels chooses); smaller ones, and more rows, are cuBLASLt's. `gate`: the first N / 2 columns gate the others,
// and out is [M, N / 2] = gate(first N / 2 columns) * the others, neither half rounded before; up to kWideMaxGatedRows rows.
inline constexpr int kWideMaxRows = 128, kWideMaxGatedRows = 64;
// Whether device, types and alignment are such that wide_linear() takes them: 16-bit types throughout, rows of 16 bytes.
bool wide_linear_applies(const Linear &p, bool gated);
void wide_linear(const Linear &p, std::optional<Activation> gate, cudaStream_t stream);

// Gated products of any number of rows on Hopper, for weights of several tiles for each multiprocessor: out [M, N / 2] =
// kind(first N / 2 columns) * the others. Neither half is rounded before. For 16-bit types throughout, N / 2 a multiple of 8, rows of
// 16 bytes.
bool gated_linear_applies(const Linear &p);
void gated_linear(const Linear &p, Activation kind, cudaStream_t stream);

// Adds bias[N] (f32) to rows of `out` [M, N]; for products whose library call has no fitting epilogue.
void add_bias(void *out, int64_t ld_out, const float *bias, int64_t M, int64_t N, DType type, cudaStream_t stream);

// What a product of few rows does besides, where a launch of its own would cost more. Of add, gated and rope at most one.
struct LinearFusion {
  // [K], 16-byte aligned: the input counts as rms_norm() of it. bf16 only, since what is not yet divided by its norm has no room
  // in f16.
  const float *norm = nullptr;
  float eps = 0, norm_offset = 0;
  bool add = false;             // out += the product, as add() would; the input must be apart from `out`
  bool gated = false;           // out [M, N / 2] = gated_act() of the product's first and second half
  Activation kind = Activation::silu;
  const Rope *rope = nullptr;   // rope_append() of the product, whose columns are the heads of q, k and v
  const KvAppend *append = nullptr;
};
// False: for more than kSkinnyMaxRows rows, types that differ or are f32, rows that are not aligned, rotations of other than
// whole heads in halves.
bool fused_linear_applies(const Linear &p, const LinearFusion &f);
// Products are rounded to their type before they are added, activated or rotated.
void fused_linear(const Linear &p, const LinearFusion &f, cudaStream_t stream);

} // namespace llmrt::cuda
