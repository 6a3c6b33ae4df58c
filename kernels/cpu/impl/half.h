// bf16 and f16 from and to f32, one element at a time, with integer arithmetic only: for the plain kernels
// and for the scales of quantised blocks. Round to nearest even; NaN stays NaN.
#pragma once

#include <stdint.h>
#include <string.h>

namespace llmrt::cpu::half {

static inline float from_bf16(uint16_t h) {
  const uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline uint16_t to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if (f != f)
    return (uint16_t)((u >> 16) | 0x40);
  return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
static inline float from_f16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3ff;
  uint32_t u;
  float f;
  if (e == 0) { // zero and subnormal: m * 2^-24
    f = (float)m * 0x1p-24f;
    memcpy(&u, &f, 4);
    u |= sign;
  } else {
    u = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | (m << 13) | (e == 31 && m ? 0x400000u : 0);
  }
  memcpy(&f, &u, 4);
  return f;
}
static inline uint16_t to_f16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  const uint32_t sign = (u >> 16) & 0x8000;
  u &= 0x7fffffff;
  if (u > 0x7f800000) // NaN
    return (uint16_t)(sign | 0x7e00 | ((u >> 13) & 0x3ff));
  if (u >= 0x477ff000) // 65520 and more round to inf
    return (uint16_t)(sign | 0x7c00);
  if (u < 0x38800000) { // below 2^-14: a multiple of 2^-24; adding 0.5 leaves it rounded in the low bits
    float a;
    memcpy(&a, &u, 4);
    a += 0.5f;
    memcpy(&u, &a, 4);
    return (uint16_t)(sign | (u - 0x3f000000));
  }
  u += 0xfff + ((u >> 13) & 1);
  return (uint16_t)(sign | ((u - 0x38000000) >> 13));
}

} // namespace llmrt::cpu::half
