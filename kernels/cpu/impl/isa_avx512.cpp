// The kernels compiled for one instruction set (avx512); CMakeLists.txt gives this file its -m flags.
#define LLMRT_ISA_NS avx512
#define LLMRT_SIMD_LEVEL 2
#include "kernels/cpu/impl/table.h"

#include "kernels/cpu/impl/simd.h"

#include "kernels/cpu/impl/gemm.inl"

#include "kernels/cpu/impl/gemm_quant.inl"

#include "kernels/cpu/impl/gemm_panels.inl"

#include "kernels/cpu/impl/attention.inl"

#include "kernels/cpu/impl/rows.inl"

#include "kernels/cpu/impl/isa_table.inl"
