// Gated activations, row gathering, addition: the simple kernels between the products.
#pragma once

#include "kernels/cpu/team.h"

namespace llmrt::cpu {

enum class Act : uint8_t { silu = 0, gelu_tanh = 1, gelu = 2 };

// out[t, f] = act(gate[t, f]) * up[t, f]. For a fused [T, 2F] row pass up = gate + F and both strides 2F.
void gated_act(Team &team, Act act, float *out, int64_t out_stride, // [T, F]; may be gate or up
               const float *gate, int64_t gate_stride,              // [T, F]
               const float *up, int64_t up_stride,                  // [T, F]
               int64_t T, int64_t F);

// out[i] = in[rows[i]].
void select_rows(Team &team, float *out, int64_t out_stride, // [R, H]
                 const float *in, int64_t in_stride,         // [any, H]
                 const int32_t *rows,                        // [R]
                 int64_t R, int64_t H);

// out = a + b. out may be a or b.
void add(Team &team, float *out, int64_t out_stride, // [T, H]
         const float *a, int64_t a_stride,           // [T, H]
         const float *b, int64_t b_stride,           // [T, H]
         int64_t T, int64_t H);

// out[i] = exp(in[i]): relative error below 1.2e-7 (about one unit in the last place) for results that are
// normal numbers; smaller results are 0, larger ones inf; NaN stays NaN.
void exp_f32(float *out, const float *in, int64_t n);

} // namespace llmrt::cpu
