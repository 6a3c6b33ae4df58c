// A layer of a narrow model in two launches, for steps of a few sequences with a token each: norm, qkv, rotation, append,
// attention and the output product in one, norm, gate, activation and the down product in the other. Such a layer has so little
// to read that what it takes is the way from one kernel to the next; in here, results pass between the blocks of a cluster.
//
// The second product of each launch is summed over clusters: they leave parts, and whoever reads the residual next adds them.
// As in kernels.h, functions launch and return; raw device pointers, shapes in comments.
#pragma once

#include "kernels/cuda/activation.h"
#include "kernels/cuda/rope.h"

namespace llmrt::cuda {

inline constexpr int kNarrowMaxRows = 4;
inline constexpr int kNarrowMaxParts = 16;
// Of all sequences together: where they have more keys, attention with the whole device is sooner done than with a cluster for
// each KV head.
inline constexpr int64_t kNarrowMaxKeys = 8192;

// The residual where it enters a launch: what is in `rows`, and the parts of the product before that are not in it yet, if any.
// Everything bf16 but for parts, which are f32.
struct NarrowResidual {
  const void *rows;     // [M, H]
  int64_t ld;
  const float *parts;   // [count, M, H], added in order, their sum rounded first
  int count;            // up to kNarrowMaxParts; 0: none
  void *sum;            // [M, H] all of it, for the next launch; apart from `rows`
  int64_t ld_sum;
};

// How a launch is cut up; narrow_shape() chooses, the bench walks through others.
struct NarrowShape {
  int cluster = 0;  // blocks of a cluster: up to 16
  int clusters = 0; // of the feed-forward: each has a share of its columns. In attention, each KV head has one.
  int steps = 0;    // of attention: 16 keys each, that a block has at least before another one takes some
};

struct NarrowAttention {
  NarrowResidual in;
  const float *norm;    // [H], 16-byte aligned
  float eps, norm_offset;
  const void *qkv;      // [(q_heads + 2 kv_heads) head_dim, H]
  const float *qkv_bias; // or null
  Rope rope;            // q, k and their strides are not read; neither is T
  KvAppend append;      // only pool and slot_mapping are read
  const int32_t *context_lens; // [M], device: tokens in the pages, this step's included; 0: a padded row, whose result is worthless
  const int32_t *page_table;   // [M, page_table_stride], device
  int64_t page_table_stride;
  float scale, softcap; // as in Attention
  int window;
  const void *output;   // [H, q_heads head_dim]
  const float *output_bias; // [H] or null
  float *parts;         // [kv_heads, M, H]: the result
  int64_t M, H;
};

struct NarrowFeedForward {
  NarrowResidual in;
  const float *norm;    // [H], 16-byte aligned
  float eps, norm_offset;
  const void *gate_up;  // [2 F, H], gates first
  const float *gate_up_bias; // [2 F] or null
  Activation kind;
  const void *down;     // [H, F]
  const float *down_bias; // [H] or null
  float *parts;         // [narrow_shape().clusters, M, H]: the result
  int64_t M, H, F;
};

// Whether these run for up to kNarrowMaxRows rows: on Hopper and later, all bf16, heads of 64, query heads in even groups of up to
// 16 (`rope.q_heads / rope.kv_heads`), pages of a multiple of 16, and weights of which each block can hold its share beside a block
// of the other launch. M and what changes from step to step is not looked at.
bool narrow_attention_applies(const NarrowAttention &p);
bool narrow_feed_forward_applies(const NarrowFeedForward &p);
NarrowShape narrow_shape(const NarrowAttention &p);
NarrowShape narrow_shape(const NarrowFeedForward &p);

// Like attention(), it reads positions, slots, lengths, pages and the keys and values of earlier tokens while the kernels in front
// still run.
void narrow_attention(const NarrowAttention &p, const NarrowShape &shape, cudaStream_t stream);
void narrow_feed_forward(const NarrowFeedForward &p, const NarrowShape &shape, cudaStream_t stream);

// The residual with its parts to `sum`, which may be `rows` here: for whoever reads it without knowing of parts.
void narrow_add_parts(const NarrowResidual &in, int64_t M, int64_t H, cudaStream_t stream);

} // namespace llmrt::cuda
