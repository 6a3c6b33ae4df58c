// Dequantisation of GGUF blocks, written from the format: a block is a few scales and packed integers.
// Values are computed as the format's definition has them (scale times integer, then the offset), in f32.
#include "kernels/cpu/dequant.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/impl/half.h"

namespace llmrt::cpu {
namespace {

float read_f16(const uint8_t *p) {
  uint16_t h;
  std::memcpy(&h, p, 2);
  return half::from_f16(h);
}

uint32_t read_u32(const uint8_t *p) {
  uint32_t u;
  std::memcpy(&u, p, 4);
  return u;
}

// Types of 32 elements. Nibbles: element i in the low half of byte i, element 16 + i in the high half.

void q4_0(float *out, const uint8_t *b) { // d, nibbles[16]: d * (q - 8)
  const float d = read_f16(b);
  for (int i = 0; i < 16; i++) {
    out[i] = d * static_cast<float>((b[2 + i] & 15) - 8);
    out[16 + i] = d * static_cast<float>((b[2 + i] >> 4) - 8);
  }
}

void q4_1(float *out, const uint8_t *b) { // d, m, nibbles[16]: d * q + m
  const float d = read_f16(b), m = read_f16(b + 2);
  for (int i = 0; i < 16; i++) {
    out[i] = d * static_cast<float>(b[4 + i] & 15) + m;
    out[16 + i] = d * static_cast<float>(b[4 + i] >> 4) + m;
  }
}

void q5_0(float *out, const uint8_t *b) { // d, fifth bits (32), nibbles[16]: d * (q - 16)
  const float d = read_f16(b);
  const uint32_t high = read_u32(b + 2);
  for (int i = 0; i < 16; i++) {
    const int lo = (b[6 + i] & 15) | static_cast<int>((high >> i & 1) << 4);
    const int hi = (b[6 + i] >> 4) | static_cast<int>((high >> (16 + i) & 1) << 4);
    out[i] = d * static_cast<float>(lo - 16);
    out[16 + i] = d * static_cast<float>(hi - 16);
  }
}

void q5_1(float *out, const uint8_t *b) { // d, m, fifth bits (32), nibbles[16]: d * q + m
  const float d = read_f16(b), m = read_f16(b + 2);
  const uint32_t high = read_u32(b + 4);
  for (int i = 0; i < 16; i++) {
    const int lo = (b[8 + i] & 15) | static_cast<int>((high >> i & 1) << 4);
    const int hi = (b[8 + i] >> 4) | static_cast<int>((high >> (16 + i) & 1) << 4);
    out[i] = d * static_cast<float>(lo) + m;
    out[16 + i] = d * static_cast<float>(hi) + m;
  }
}

void q8_0(float *out, const uint8_t *b) { // d, int8[32]: d * q
  const float d = read_f16(b);
  for (int i = 0; i < 32; i++)
    out[i] = d * static_cast<float>(static_cast<int8_t>(b[2 + i]));
}

// Types of 256 elements.

// Scale and minimum, six bits each, of the eight groups of 32 in a Q4_K or Q5_K block: twelve bytes, the
// first four groups in the low six bits of bytes 0-3 and 4-7, the others in bytes 8-11 plus the top two bits.
void k_scales(const uint8_t *s, float d, float dmin, float (&scale)[8], float (&min)[8]) {
  for (int j = 0; j < 4; j++) {
    scale[j] = d * static_cast<float>(s[j] & 63);
    min[j] = dmin * static_cast<float>(s[4 + j] & 63);
    scale[4 + j] = d * static_cast<float>((s[8 + j] & 15) | (s[j] >> 6) << 4);
    min[4 + j] = dmin * static_cast<float>((s[8 + j] >> 4) | (s[4 + j] >> 6) << 4);
  }
}

void q4_k(float *out, const uint8_t *b) { // d, dmin, scales[12], nibbles[128]
  float scale[8], min[8];
  k_scales(b + 4, read_f16(b), read_f16(b + 2), scale, min);
  const uint8_t *q = b + 16;
  for (int g = 0; g < 8;
       g += 2, q += 32) // 32 bytes hold one group in their low halves and the next one above
    for (int i = 0; i < 32; i++) {
      out[g * 32 + i] = scale[g] * static_cast<float>(q[i] & 15) - min[g];
      out[g * 32 + 32 + i] = scale[g + 1] * static_cast<float>(q[i] >> 4) - min[g + 1];
    }
}

void q5_k(float *out, const uint8_t *b) { // d, dmin, scales[12], fifth bits[32], nibbles[128]
  float scale[8], min[8];
  k_scales(b + 4, read_f16(b), read_f16(b + 2), scale, min);
  const uint8_t *high = b + 16, *q = b + 48; // bit g of high[i] belongs to element i of group g
  for (int g = 0; g < 8; g += 2, q += 32)
    for (int i = 0; i < 32; i++) {
      const int lo = (q[i] & 15) | (high[i] >> g & 1) << 4, hi = (q[i] >> 4) | (high[i] >> (g + 1) & 1) << 4;
      out[g * 32 + i] = scale[g] * static_cast<float>(lo) - min[g];
      out[g * 32 + 32 + i] = scale[g + 1] * static_cast<float>(hi) - min[g + 1];
    }
}

void q6_k(float *out,
          const uint8_t *b) { // low nibbles[128], high pairs[64], int8 scales[16] of 16 elements, d
  const uint8_t *low = b, *high = b + 128;
  const uint8_t *scales = b + 192;
  const float d = read_f16(b + 208);
  for (int half = 0; half < 2; half++, low += 64, high += 32)
    for (int g = 0; g < 4;
         g++) // groups of 32: g = 0, 1 in the low nibbles of the 64 bytes, 2, 3 in the high ones
      for (int i = 0; i < 32; i++) {
        const int nibble = g < 2 ? low[g * 32 + i] & 15 : low[(g - 2) * 32 + i] >> 4;
        const int q = (nibble | (high[i] >> (2 * g) & 3) << 4) - 32;
        const int at = half * 128 + g * 32 + i;
        out[at] = d * static_cast<float>(static_cast<int8_t>(scales[at / 16])) * static_cast<float>(q);
      }
}

struct Format {
  GgmlType type;
  const char *name;
  GgmlBlock block;
  void (*decode)(float *out, const uint8_t *block); // null: plain elements
};

constexpr Format formats[] = {
    {GgmlType::F32, "F32", {1, 4}, nullptr},    {GgmlType::F16, "F16", {1, 2}, nullptr},
    {GgmlType::BF16, "BF16", {1, 2}, nullptr},  {GgmlType::Q4_0, "Q4_0", {32, 18}, q4_0},
    {GgmlType::Q4_1, "Q4_1", {32, 20}, q4_1},   {GgmlType::Q5_0, "Q5_0", {32, 22}, q5_0},
    {GgmlType::Q5_1, "Q5_1", {32, 24}, q5_1},   {GgmlType::Q8_0, "Q8_0", {32, 34}, q8_0},
    {GgmlType::Q4_K, "Q4_K", {256, 144}, q4_k}, {GgmlType::Q5_K, "Q5_K", {256, 176}, q5_k},
    {GgmlType::Q6_K, "Q6_K", {256, 210}, q6_k},
};

const Format *find(GgmlType type) {
  for (const Format &f : formats)
    if (f.type == type)
      return &f;
  return nullptr;
}

} // namespace

GgmlBlock ggml_block(GgmlType type) {
  const Format *f = find(type);
  return f ? f->block : GgmlBlock{0, 0};
}

const char *ggml_type_name(GgmlType type) {
  const Format *f = find(type);
  return f ? f->name : "unknown";
}

size_t ggml_row_bytes(GgmlType type, int64_t n) {
  const GgmlBlock b = ggml_block(type);
  return b.elements == 0 ? 0 : static_cast<size_t>(n / b.elements * b.bytes);
}

void dequantize(float *out, const void *in, GgmlType type, int64_t n) {
  const Format *f = find(type);
  if (!f)
    throw std::invalid_argument(
        "GGUF tensor type " + std::to_string(static_cast<uint32_t>(type)) +
        " cannot be dequantised; convert the file to F16, BF16, Q8_0 or another supported type");
  if (n % f->block.elements != 0)
    throw std::invalid_argument("a row of " + std::to_string(n) + " elements of type " + f->name +
                                " is not whole blocks of " + std::to_string(f->block.elements) +
                                " elements; the file is damaged or the row was cut wrongly");
  switch (type) {
  case GgmlType::F32:
    std::memcpy(out, in, static_cast<size_t>(n) * 4);
    return;
  case GgmlType::F16:
    to_f32(out, in, DType::f16, n);
    return;
  case GgmlType::BF16:
    to_f32(out, in, DType::bf16, n);
    return;
  default:
    break;
  }
  const uint8_t *block = static_cast<const uint8_t *>(in);
  for (int64_t i = 0; i < n; i += f->block.elements, block += f->block.bytes)
    f->decode(out + i, block);
}

} // namespace llmrt::cpu
