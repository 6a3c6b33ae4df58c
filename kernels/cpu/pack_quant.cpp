// Packs GGUF blocks into panels of 16 rows without changing a value, and reads rows back. See linear.h.
#include "kernels/cpu/impl/pack_quant.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/cpu/impl/half.h"
#include "kernels/cpu/impl/table.h"
#include "kernels/cpu/linear.h"

namespace llmrt::cpu {
namespace {

uint8_t *block_of(void *packed, DType t, int64_t K, int64_t n, int64_t block) {
  return static_cast<uint8_t *>(packed) + (n / kPanelRows * (K / 32) + block) * quant_block_bytes(t);
}

// Byte and shift of element k (0..31) of a lane: see the layouts in linear.h.
int64_t q8_at(int64_t lane, int64_t k) {
  return quant_data_at(DType::q8_0) + k * 16 + lane;
}
int64_t q4_at(int64_t lane, int64_t k) {
  return quant_data_at(DType::q4_1) + k / 8 * 64 + lane * 4 + k % 2 * 2 + k % 8 / 4;
}
int q4_shift(int64_t k) {
  return k % 4 / 2 * 4;
}

void set_half(uint8_t *block, int64_t index, uint16_t h) {
  std::memcpy(block + index * 2, &h, 2);
}
float get_half(const uint8_t *block, int64_t index) {
  uint16_t h;
  std::memcpy(&h, block + index * 2, 2);
  return half::from_f16(h);
}

void pack_q8_0(uint8_t *dst, int64_t lane, const uint8_t *src) {
  std::memcpy(dst + lane * 2, src, 2);
  for (int64_t k = 0; k < 32; k++)
    dst[q8_at(lane, k)] = src[2 + k];
}

void pack_q4(uint8_t *dst, int64_t lane, uint16_t scale, uint16_t offset, const uint8_t *nibbles) {
  set_half(dst, lane, scale);
  set_half(dst, 16 + lane, offset);
  for (int64_t k = 0; k < 32; k++) {
    const unsigned q = k < 16 ? nibbles[k] & 15u : nibbles[k - 16] >> 4;
    uint8_t &byte = dst[q4_at(lane, k)];
    byte = static_cast<uint8_t>((byte & ~(15u << q4_shift(k))) | q << q4_shift(k));
  }
}

} // namespace

void pack_quantized_rows(void *packed, DType dtype, int64_t, int64_t K, int64_t n0, int64_t rows,
                         const void *src, GgmlType src_type, size_t src_row_bytes) {
  const bool q8 = dtype == DType::q8_0 && src_type == GgmlType::Q8_0;
  const bool q4 = dtype == DType::q4_1 && (src_type == GgmlType::Q4_1 || src_type == GgmlType::Q4_0);
  if (!q8 && !q4)
    throw std::invalid_argument(
        std::string("GGUF tensor type ") + ggml_type_name(src_type) +
        " cannot be kept quantised in this packed weight; dequantise it and pack it as bf16, f16 or f32");
  if (K % 32 != 0)
    throw std::invalid_argument(
        "a quantised weight of " + std::to_string(K) +
        " columns is not whole blocks of 32 columns; split it in multiples of 32, or dequantise it");
  const int64_t src_block = ggml_block(src_type).bytes;
  for (int64_t i = 0; i < rows; i++) {
    const uint8_t *row = static_cast<const uint8_t *>(src) + static_cast<size_t>(i) * src_row_bytes;
    const int64_t n = n0 + i, lane = n % kPanelRows;
    for (int64_t b = 0; b < K / 32; b++, row += src_block) {
      uint8_t *dst = block_of(packed, dtype, K, n, b);
      if (q8) {
        pack_q8_0(dst, lane, row);
        continue;
      }
      uint16_t scale, offset;
      std::memcpy(&scale, row, 2);
      if (src_type == GgmlType::Q4_1)
        std::memcpy(&offset, row + 2, 2);
      else
        offset = half::to_f16(-8.0f * half::from_f16(scale));
      pack_q4(dst, lane, scale, offset, row + (src_type == GgmlType::Q4_1 ? 4 : 2));
    }
  }
}

void pack_quantized_padding(void *packed, DType dtype, int64_t N, int64_t K) {
  const uint8_t zeros[34] = {};
  for (int64_t n = N; n % kPanelRows != 0; n++)
    for (int64_t b = 0; b < K / 32; b++) {
      uint8_t *dst = block_of(packed, dtype, K, n, b);
      if (dtype == DType::q8_0)
        pack_q8_0(dst, n % kPanelRows, zeros);
      else
        pack_q4(dst, n % kPanelRows, 0, 0, zeros);
    }
}

void unpack_quantized_row(float *out, const void *packed, DType dtype, int64_t K, int64_t n) {
  const int64_t lane = n % kPanelRows;
  for (int64_t b = 0; b < K / 32; b++) {
    const uint8_t *block = block_of(const_cast<void *>(packed), dtype, K, n, b);
    const float scale = get_half(block, lane);
    for (int64_t k = 0; k < 32; k++)
      if (dtype == DType::q8_0)
        out[b * 32 + k] = scale * static_cast<float>(static_cast<int8_t>(block[q8_at(lane, k)]));
      else
        out[b * 32 + k] = scale * static_cast<float>(block[q4_at(lane, k)] >> q4_shift(k) & 15) +
                          get_half(block, 16 + lane);
  }
}

} // namespace llmrt::cpu
