// RMS normalisation, alone and fused with the residual addition before it.
// Sums are f32 in a fixed order of 16 lanes; a row depends on itself only.
#pragma once

#include "kernels/cpu/team.h"

namespace llmrt::cpu {

// out = in / sqrt(mean(in^2) + eps) * (weight + weight_offset). out may be in.
void rms_norm(Team &team, float *out, int64_t out_stride, // [T, H]
              const float *in, int64_t in_stride,         // [T, H]
              const float *weight,                        // [H]
              float eps, float weight_offset,             // offset 0, or 1 for Gemma
              int64_t T, int64_t H);

// residual += in, then out = rms_norm(residual). out may be in.
void add_rms_norm(Team &team, float *out, int64_t out_stride, // [T, H]
                  float *residual, int64_t residual_stride,   // [T, H], updated
                  const float *in, int64_t in_stride,         // [T, H]
                  const float *weight,                        // [H]
                  float eps, float weight_offset, int64_t T, int64_t H);

} // namespace llmrt::cpu
