// A vector of 16 floats, V, and the few operations that the kernels are written with; one
// implementation per instruction set, chosen by the macros that the including file defines:
//   LLMRT_ISA_NS        namespace of everything compiled with this file's -m flags
//   LLMRT_SIMD_LEVEL    0 plain, 1 AVX2 + FMA + F16C, 2 AVX-512 (F, BW, VL, DQ), 3 with AVX512_BF16
//
// Files compiled with -m flags must not instantiate library templates: a weak copy of std::max
// with AVX-512 code in it could be the one that the linker keeps for everybody.
//
// Operations (all implementations agree on them; sums of lanes are always the same tree):
//   vzero vset(x) vload(p) vload_n(p, n) vstore(p, v) vstore_n(p, v, n)     n < 16 lanes, rest zero/untouched
//   vadd vsub vmul vdiv vmax(a,b) vmin(a,b)   a NaN in b is kept by vmax and vmin
//   vfma(a, b, c) = a*b + c, vfnma(a, b, c) = c - a*b, vround (nearest even), vscale2(x, n) = x * 2^n
//   vkeep(v, lo, hi, fill)      lanes [lo, hi) of v, fill elsewhere
//   vselect_lt(a, b, x, y)      lane: a < b ? x : y
//   vsum(v) vmaxlane(v)
//   vload_bf16 vload_f16 (16 halves), vstore_bf16 vstore_f16
//   vload_even_bf16 vload_odd_bf16  the first or second elements of 16 pairs
//   vload_i8(p)                 16 signed bytes; vload_nibbles<shift>(p): (lane >> shift) & 15 of 16 32-bit
//   lanes vprefetch<near>(p)          into the first-level cache, or only the second transpose16(dst,
//   src[16])   dst[c*16 + r] = lane c of src[r]
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LLMRT_INLINE static inline __attribute__((always_inline, unused))

#if LLMRT_SIMD_LEVEL >= 2
#include "kernels/cpu/impl/simd_avx512.h"
#elif LLMRT_SIMD_LEVEL == 1
#include "kernels/cpu/impl/simd_avx2.h"
#else
#include "kernels/cpu/impl/simd_plain.h"
#endif

namespace llmrt::cpu::LLMRT_ISA_NS {

LLMRT_INLINE int64_t imin(int64_t a, int64_t b) {
  return a < b ? a : b;
}
LLMRT_INLINE int64_t imax(int64_t a, int64_t b) {
  return a > b ? a : b;
}
LLMRT_INLINE int64_t iceil(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// e^x, relative error < 1.2e-7: x = n ln2 + r, |r| <= ln2/2; e^r by a polynomial of degree 6 (least maximal
// relative error 3e-9), the rest is rounding. Below ln(2^-126) the result is 0, above ln(FLT_MAX) inf.
LLMRT_INLINE V vexp(V x) {
  const V lo = vset(-87.33654f), hi = vset(88.72283f);
  const V xc = vmin(hi, vmax(lo, x));
  const V n = vround(vmul(xc, vset(1.44269504f)));
  V r = vfnma(n, vset(0x1.62e4p-1f), xc);
  r = vfnma(n, vset(0x1.7f7d1cp-20f), r);
  V p = vset(0x1.6a2418p-10f);
  p = vfma(p, r, vset(0x1.1239e6p-7f));
  p = vfma(p, r, vset(0x1.5558f2p-5f));
  p = vfma(p, r, vset(0x1.555492p-3f));
  p = vfma(p, r, vset(0x1.fffffcp-2f));
  p = vfma(vmul(r, r), p, vadd(r, vset(1.0f)));
  V e = vscale2(p, n);
  e = vselect_lt(x, lo, vzero(), e);
  return vselect_lt(hi, x, vset(__builtin_inff()), e);
}

// tanh x = sign(x) (1 - 2 / (e^2|x| + 1)); absolute error < 2e-7.
LLMRT_INLINE V vtanh(V x) {
  const V a = vmin(vset(20.0f), vmax(x, vsub(vzero(), x)));
  const V t = vsub(vset(1.0f), vdiv(vset(2.0f), vadd(vexp(vadd(a, a)), vset(1.0f))));
  return vselect_lt(x, vzero(), vsub(vzero(), t), t);
}

} // namespace llmrt::cpu::LLMRT_ISA_NS
