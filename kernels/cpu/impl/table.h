// The functions that exist once per instruction set, as a table of pointers, and their arguments.
// Each does one thread's part of a kernel; splitting the work over a team is done outside, once.
#pragma once

#include "kernels/cpu/attention.h"
#include "kernels/cpu/dtype.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/rope.h"

namespace llmrt::cpu {

// Rows of x, regrouped for the product: blocks of `block_rows` rows (the last one holds the rest), in each
// block chunks of 64 bytes per row: [ceil(K/chunk)][rows of the block][chunk], chunk = 16 f32 or 32 bf16.
struct PackedRows {
  void *data;
  float *sums; // for quantised weights, in each block of rows: [K/32][rows of the block], sums of 32 elements
  int64_t rows, K;
  int64_t block_rows;
};

// Bytes of a block of 16 rows by 32 columns of a packed quantised weight, and where its integers start.
constexpr int64_t quant_block_bytes(DType t) {
  return t == DType::q8_0 ? 544 : 320;
}
constexpr int64_t quant_data_at(DType t) {
  return t == DType::q8_0 ? 32 : 64;
}

struct LinearTask {
  PackedRows x;
  const void *w; // packed panels
  DType dtype;
  int64_t N;
  float *y; // first row of this block of rows
  int64_t ldy;
  const float *bias;
  const float *add;
  int64_t ld_add;
};

// A unit of attention work: query rows [row0, row0 + rows) of sequence `seq` and KV head `kv_head`, counted
// over (token, query head of the group), against the blocks of keys [split0, split1) * kSplitKeys.
struct AttentionItem {
  int32_t seq, kv_head;
  int64_t row0, rows;
  int64_t split0, split1;
  float
      *partial; // null: write the final rows; else [split1-split0][rows][partial_stride]: m, l, acc[head_dim]
};

// What the items of one call share.
struct AttentionCall {
  const PagedAttention *p;
  const int32_t *group_heads; // query heads sorted by KV head
  const int32_t *group_start; // [kv_heads + 1] into group_heads
};

inline constexpr int64_t kKeyBlock = 64;   // keys per online-softmax step
inline constexpr int64_t kSplitKeys = 256; // keys per independently summed part, a multiple of kKeyBlock
inline constexpr int64_t kMaxAttentionRows = 112; // query rows of an item
constexpr int64_t partial_stride(int64_t head_dim) {
  return 2 + head_dim;
}

struct KernelTable {
  int block_rows, quant_block_rows; // most rows of a PackedRows block, for quantised weights
  void (*pack_rows)(const PackedRows &dst, DType weight, const float *x, int64_t ldx, int64_t row0,
                    int64_t row1);
  void (*linear_panels)(const LinearTask &t, int64_t panel0, int64_t panel1, float *tile);
  size_t (*attention_item_scratch)(int64_t head_dim);
  void (*attention_item)(const AttentionCall &c, const AttentionItem &item, void *scratch);
  void (*attention_merge)(const AttentionCall &c, const AttentionItem &item, int64_t splits);
  void (*rms_norm_row)(float *out, const float *in, const float *weight, float eps, float offset, int64_t H);
  void (*add_rms_norm_row)(float *out, float *residual, const float *in, const float *weight, float eps,
                           float offset, int64_t H);
  void (*rope_rows)(const Rope &p, int64_t t0, int64_t t1);
  void (*gated_act_row)(Act act, float *out, const float *gate, const float *up, int64_t F);
  void (*add_row)(float *out, const float *a, const float *b, int64_t n);
  void (*scale_row)(float *x, float scale, int64_t n);
  void (*exp_row)(float *out, const float *in, int64_t n);
  void (*to_f32)(float *out, const void *in, DType t, int64_t n);
  void (*from_f32)(void *out, DType t, const float *in, int64_t n);
};

// The table of the instruction set in use.
const KernelTable &kernels();

#define LLMRT_DECLARE_TABLE(ns)                                                                              \
  namespace ns {                                                                                             \
  extern const KernelTable table;                                                                            \
  }
LLMRT_DECLARE_TABLE(plain)
LLMRT_DECLARE_TABLE(avx2)
LLMRT_DECLARE_TABLE(avx512)
LLMRT_DECLARE_TABLE(avx512_bf16)
#undef LLMRT_DECLARE_TABLE

} // namespace llmrt::cpu
