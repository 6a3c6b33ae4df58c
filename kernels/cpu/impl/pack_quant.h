// The quantised half of weight packing (linear.h), called from linear.cpp.
#pragma once

#include "kernels/cpu/dtype.h"

namespace llmrt::cpu {

void pack_quantized_padding(void *packed, DType dtype, int64_t N, int64_t K);
void unpack_quantized_row(float *out, const void *packed, DType dtype, int64_t K, int64_t n);

} // namespace llmrt::cpu
