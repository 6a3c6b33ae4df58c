// Conversions; rows go to the kernel table, single elements are done here.
#include "kernels/cpu/convert.h"

#include <bit>
#include <cstring>

#include "kernels/cpu/impl/table.h"

namespace llmrt::cpu {

void to_f32(float *out, const void *in, DType in_dtype, int64_t n) {
  if (in_dtype == DType::f32)
    std::memmove(out, in, static_cast<size_t>(n) * 4);
  else
    kernels().to_f32(out, in, in_dtype, n);
}

void from_f32(void *out, DType out_dtype, const float *in, int64_t n) { kernels().from_f32(out, out_dtype, in, n); }

uint16_t f32_to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if (x != x)
    return static_cast<uint16_t>((u >> 16) | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

float bf16_to_f32(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

uint16_t f32_to_f16(float x) {
  uint16_t h;
  plain::table.from_f32(&h, DType::f16, &x, 1);
  return h;
}

float f16_to_f32(uint16_t x) {
  float f;
  plain::table.to_f32(&f, &x, DType::f16, 1);
  return f;
}

} // namespace llmrt::cpu
