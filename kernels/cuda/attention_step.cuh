// A warp's step of decode attention: sixteen keys and values in shared memory against up to sixteen query rows, with an online
// softmax in base 2.
#pragma once

#include "kernels/cuda/attention.cuh"

namespace llmrt::cuda {

// kDim: head_dim rounded up to 16. Rows in shared memory are kStride apart, so that ldmatrix meets no bank conflict.
template <typename T, int kDim> struct DecodeStep {
  static constexpr int kKeys = 16, kStride = kDim + 8, kDimTiles = kDim / 8, kDimSteps = kDim / 16;
  static constexpr bool kQueryInRegisters = kDim <= 128;
  using Query = const T (&)[kDecodeRows][kStride];
  using Keys = const T (&)[kKeys][kStride];

  // Of this lane's rows lane / 4 and lane / 4 + 8: sums of values, maximum, denominator (of this lane's keys until finish()).
  float o[kDimTiles][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0};
  uint32_t qf[kQueryInRegisters ? kDimSteps : 1][4];

  __device__ __forceinline__ void begin(Query query) {
    const int lane = threadIdx.x % 32;
    if constexpr (kQueryInRegisters) {
#pragma unroll
      for (int s = 0; s < kDimSteps; ++s)
        load_matrices(qf[s], &query[lane % 16][s * 16 + lane / 16 * 8]);
    }
  }

  // seen(i, key): whether this lane's row i sees the key; the first of `keys` is key0. scale: of scores, times log2(e) where
  // there is no softcap.
  template <typename F>
  __device__ __forceinline__ void step(Query query, Keys keys, Keys values, int key0, float scale, float softcap, F &&seen) {
    const int lane = threadIdx.x % 32;
    float s[2][4] = {}, odd[2][4] = {}; // two chains of products
#pragma unroll
    for (int d = 0; d < kDimSteps; ++d) {
      uint32_t q[4], k[4];
      if constexpr (kQueryInRegisters) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          q[i] = qf[d][i];
      } else {
        load_matrices(q, &query[lane % 16][d * 16 + lane / 16 * 8]);
      }
      load_matrices(k, &keys[lane % 8 + lane / 16 * 8][d * 16 + lane / 8 % 2 * 8]);
      mma<T>(d % 2 ? odd[0] : s[0], q, k[0], k[1]);
      mma<T>(d % 2 ? odd[1] : s[1], q, k[2], k[3]);
    }
    // Mask and online softmax, base 2.
    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = key0 + t * 8 + lane % 4 * 2 + i % 2;
        float x = (s[t][i] + odd[t][i]) * scale;
        if (softcap > 0)
          x = softcap * kLog2e * tanhf(x);
        s[t][i] = seen(i / 2, key) ? x : -INFINITY;
        top[i / 2] = fmaxf(top[i / 2], s[t][i]);
      }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 1));
      top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 2));
      top[i] = fmaxf(top[i], m[i]);
    }
    if (__any_sync(0xffffffffu, top[0] > m[0] || top[1] > m[1])) {
      float factor[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        factor[i] = top[i] == -INFINITY ? 1.0f : exp2f(m[i] - top[i]);
        l[i] *= factor[i];
        m[i] = top[i];
      }
#pragma unroll
      for (int t = 0; t < kDimTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          o[t][i] *= factor[i / 2];
    }
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s[t][i] = m[i / 2] == -INFINITY ? 0.0f : exp2f(s[t][i] - m[i / 2]);
        l[i / 2] += s[t][i];
      }
    const uint32_t a[4] = {pack<T>(s[0][0], s[0][1]), pack<T>(s[0][2], s[0][3]), pack<T>(s[1][0], s[1][1]), pack<T>(s[1][2], s[1][3])};
#pragma unroll
    for (int d = 0; d < kDimTiles; d += 2) {
      uint32_t v[4];
      load_matrices_transposed(v, &values[lane % 16][d * 8 + lane / 16 * 8]);
      mma<T>(o[d], a, v[0], v[1]);
      mma<T>(o[d + 1], a, v[2], v[3]);
    }
  }

  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      l[i] += __shfl_xor_sync(0xffffffffu, l[i], 1);
      l[i] += __shfl_xor_sync(0xffffffffu, l[i], 2);
    }
  }
};

// What step() wants of a model's scale and softcap.
__device__ __forceinline__ float score_scale(float scale, float softcap) { return softcap > 0 ? scale / softcap : scale * kLog2e; }

} // namespace llmrt::cuda
