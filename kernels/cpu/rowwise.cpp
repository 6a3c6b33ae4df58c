// The kernels that treat rows one by one, split over the team by rows: norms, rope, activations, adds.
#include <cmath>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/impl/rows.h"
#include "kernels/cpu/impl/table.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/rope.h"

namespace llmrt::cpu {

void rms_norm(Team &team, float *out, int64_t out_stride, const float *in, int64_t in_stride,
              const float *weight, float eps, float weight_offset, int64_t T, int64_t H) {
  const KernelTable &table = kernels();
  for_rows(team, T, H, [&](int64_t t) {
    table.rms_norm_row(out + t * out_stride, in + t * in_stride, weight, eps, weight_offset, H);
  });
}

void add_rms_norm(Team &team, float *out, int64_t out_stride, float *residual, int64_t residual_stride,
                  const float *in, int64_t in_stride, const float *weight, float eps, float weight_offset,
                  int64_t T, int64_t H) {
  const KernelTable &table = kernels();
  for_rows(team, T, H, [&](int64_t t) {
    table.add_rms_norm_row(out + t * out_stride, residual + t * residual_stride, in + t * in_stride, weight,
                           eps, weight_offset, H);
  });
}

void rope_table(Team &team, float *table, const int32_t *positions, const float *inv_freq, float mscale,
                int64_t T, int rotary_dim) {
  const int64_t half = rotary_dim / 2;
  for_rows(team, T, half * 32, [&](int64_t t) { // a sine costs as much as some dozens of simple operations
    float *row = table + t * 2 * half;
    for (int64_t i = 0; i < half; i++) {
      const double angle = static_cast<double>(positions[t]) * static_cast<double>(inv_freq[i]);
      row[i] = static_cast<float>(std::cos(angle) * static_cast<double>(mscale));
      row[half + i] = static_cast<float>(std::sin(angle) * static_cast<double>(mscale));
    }
  });
}

void rope(Team &team, const Rope &p) {
  const KernelTable &table = kernels();
  for_rows(team, p.T, int64_t{p.heads} * p.head_dim, [&](int64_t t) { table.rope_rows(p, t, t + 1); });
}

void gated_act(Team &team, Act act, float *out, int64_t out_stride, const float *gate, int64_t gate_stride,
               const float *up, int64_t up_stride, int64_t T, int64_t F) {
  const KernelTable &table = kernels();
  for_rows(team, T, F * 4, [&](int64_t t) {
    table.gated_act_row(act, out + t * out_stride, gate + t * gate_stride, up + t * up_stride, F);
  });
}

void select_rows(Team &team, float *out, int64_t out_stride, const float *in, int64_t in_stride,
                 const int32_t *rows, int64_t R, int64_t H) {
  for_rows(team, R, H, [&](int64_t r) {
    std::memcpy(out + r * out_stride, in + rows[r] * in_stride, static_cast<size_t>(H) * 4);
  });
}

void add(Team &team, float *out, int64_t out_stride, const float *a, int64_t a_stride, const float *b,
         int64_t b_stride, int64_t T, int64_t H) {
  const KernelTable &table = kernels();
  for_rows(team, T, H,
           [&](int64_t t) { table.add_row(out + t * out_stride, a + t * a_stride, b + t * b_stride, H); });
}

void exp_f32(float *out, const float *in, int64_t n) {
  kernels().exp_row(out, in, n);
}

} // namespace llmrt::cpu
