// Rotary position embedding, in place on the heads of q and k, with Qwen3's optional per-head RMS norm
// before it. Angles are computed once per step in double precision and shared by all layers.
// RoFormer: arXiv:2104.09864.
#pragma once

#include "kernels/cpu/team.h"

namespace llmrt::cpu {

// halves: dimension i turns with i + rotary_dim/2 (NEOX, HuggingFace); pairs: 2i with 2i + 1 (GGUF llama).
enum class RopeStyle : uint8_t { halves = 0, pairs = 1 };

// table[t, 0, i] and table[t, 1, i] = cos and sin of positions[t] * inv_freq[i], times mscale.
void rope_table(Team &team,
                float *table,             // [T, 2 (cos, sin), rotary_dim/2]
                const int32_t *positions, // [T], each >= 0
                const float *inv_freq,    // [rotary_dim/2]
                float mscale, int64_t T, int rotary_dim);

struct Rope {
  float *x;           // [T, heads, head_dim], row stride x_stride elements: the q or the k part of a qkv row
  int64_t x_stride;   //
  const float *table; // [T, 2, rotary_dim/2] from rope_table; null: no rotation, only the norm
  int64_t T;
  int heads, head_dim;
  int rotary_dim; // even, <= head_dim; the rest of the head passes unturned
  RopeStyle style = RopeStyle::halves;
  const float *norm_weight = nullptr; // [head_dim] or null: RMS norm of each head first
  float norm_eps = 0;
  float norm_weight_offset = 0;
};

void rope(Team &team, const Rope &p);

} // namespace llmrt::cpu
