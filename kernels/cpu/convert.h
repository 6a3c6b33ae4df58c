// Conversions between f32 and the 16-bit types, rounding to nearest even. NaN stays NaN, overflow gives inf.
#pragma once

#include "kernels/cpu/dtype.h"

namespace llmrt::cpu {

void to_f32(float *out, const void *in, DType in_dtype, int64_t n);
void from_f32(void *out, DType out_dtype, const float *in, int64_t n);

// One element at a time, for code outside the kernels.
uint16_t f32_to_bf16(float x);
float bf16_to_f32(uint16_t x);
uint16_t f32_to_f16(float x);
float f16_to_f32(uint16_t x);

} // namespace llmrt::cpu
