// Gated products of many rows beside cuBLASLt and the activation's kernel, for bench_cuda_kernels.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>

// `data`: weights, `pool` bytes. x, y: 256 and 512 MiB. `sweep`: every shape of tiles at 7B's, not the chosen
// one at all models'.
void bench_gated(bool sweep, const __nv_bfloat16 *data, size_t pool, const __nv_bfloat16 *x, __nv_bfloat16 *y,
                 cudaStream_t stream);
