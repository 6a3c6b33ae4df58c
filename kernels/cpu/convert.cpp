// Conversions; rows go to the kernel table, single elements are done here.
#include "kernels/cpu/convert.h"

#include <cstring>

#include "kernels/cpu/impl/half.h"
#include "kernels/cpu/impl/table.h"

namespace llmrt::cpu {

void to_f32(float *out, const void *in, DType in_dtype, int64_t n) {
  if (in_dtype == DType::f32)
    std::memmove(out, in, static_cast<size_t>(n) * 4);
  else
    kernels().to_f32(out, in, in_dtype, n);
}

void from_f32(void *out, DType out_dtype, const float *in, int64_t n) {
  kernels().from_f32(out, out_dtype, in, n);
}

uint16_t f32_to_bf16(float x) {
  return half::to_bf16(x);
}
float bf16_to_f32(uint16_t x) {
  return half::from_bf16(x);
}
uint16_t f32_to_f16(float x) {
  return half::to_f16(x);
}
float f16_to_f32(uint16_t x) {
  return half::from_f16(x);
}

} // namespace llmrt::cpu
