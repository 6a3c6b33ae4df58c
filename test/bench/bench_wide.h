// Products of 2 to 128 rows by large weights beside cuBLASLt and the kernels for few rows, for bench_cuda_kernels.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>

// `data`: weights, `pool` bytes. x, y: 256 and 512 MiB. `bandwidth`: TB/s of a plain read. `sweep`: every shape of tiles beside the
// chosen one.
void bench_wide(bool sweep, double bandwidth, const __nv_bfloat16 *data, size_t pool, const __nv_bfloat16 *x, __nv_bfloat16 *y,
                cudaStream_t stream);
