// Linear layers: weights packed once at load, then y = x . W^T + bias (+ add) for any number of rows.
//
// A packed weight holds panels of 16 output rows, so that 16 outputs fill one vector register:
//   f32  [ceil(N/16)][K][16]          bf16 [ceil(N/16)][ceil(K/2)][16][2]          f16 [ceil(N/16)][K2][16]
//   q8_0 [ceil(N/16)][K/32] blocks of 544 bytes: f16 scale[16], then int8 [16 pairs of k][2][16]
//   q4_1 [ceil(N/16)][K/32] blocks of 320 bytes: f16 scale[16], f16 offset[16], then nibbles [4][16][2][4]
// with K2 = K rounded up to even; quantised weights keep their GGUF values exactly and need K % 32 == 0. Rows
// past N and columns past K are zero. Every output element is summed over k = 0, 1, 2 ... in one fixed order
// whatever M, the number of threads, or the row's place in the batch: its bits depend on its own row of x and
// on the weight only (and on the instruction set). With bf16 or quantised weights on avx512_bf16, x is
// rounded to bf16 (nearest even) first, for every M alike. Quantised: y = sum over blocks of scale * (x . q)
// + offset * sum(x), each block's x . q summed first.
#pragma once

#include "kernels/cpu/dequant.h"
#include "kernels/cpu/dtype.h"
#include "kernels/cpu/team.h"

namespace llmrt::cpu {

inline constexpr int64_t kPanelRows = 16;

// Bytes of a packed weight [N, K]: ceil(N/16)*16 * (f32: K*4; bf16, f16: roundup(K,2)*2),
// or ceil(N/16) * K/32 * (q8_0: 544; q4_1: 320). Align the buffer to 64.
size_t packed_weight_bytes(DType dtype, int64_t N, int64_t K);

// Zeroes the rows past N of the last panel. Call once per weight; pack_weight_rows never writes them.
void pack_weight_padding(void *packed, DType dtype, int64_t N, int64_t K);

// Packs `rows` rows from row n0 on of a weight [N, K]; columns [0, K). May be called in any order, with
// any split into rows, and from several threads for disjoint rows: q|k|v pack slice by slice into one weight.
void pack_weight_rows(void *packed, DType dtype, int64_t N, int64_t K, int64_t n0, int64_t rows,
                      const void *src, // [rows, K] of src_dtype, row stride src_ld elements
                      DType src_dtype, int64_t src_ld);

// The same from rows of GGUF blocks, kept as they are: Q8_0 into q8_0; Q4_1, or Q4_0, into q4_1 (an offset of
// minus eight scales). `src` is at the first of the K columns wanted, a whole block.
// Throws std::invalid_argument for another pair of types or a K that is not whole blocks.
void pack_quantized_rows(void *packed, DType dtype, int64_t N, int64_t K, int64_t n0, int64_t rows,
                         const void *src, GgmlType src_type, size_t src_row_bytes);

// Row n of a packed weight as f32.
void unpack_weight_row(float *out, // [K]
                       const void *packed, DType dtype, int64_t N, int64_t K, int64_t n);

struct Linear {
  const float *x;              // [M, K], row stride ldx
  int64_t ldx;                 //
  const void *w;               // packed [N, K]
  DType dtype;                 // of w
  float *y;                    // [M, N], row stride ldy; must not overlap x
  int64_t ldy;                 //
  int64_t M, N, K;             // M >= 0; N, K >= 1
  const float *bias = nullptr; // [N] or null
  const float *add = nullptr;  // [M, N], row stride ld_add, or null; may be y itself (residual)
  int64_t ld_add = 0;          //
};

// y = x . W^T + bias + add.
void linear(Team &team, const Linear &p);

// The most scratch that linear() asks of a team for any M up to max_M (with the instruction set in use).
size_t linear_scratch_bytes(int team_size, int64_t max_M, int64_t K);

} // namespace llmrt::cpu
