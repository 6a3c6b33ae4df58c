// Names and sizes of the element types that weight files hold. Block sizes are those of the GGUF format
// (ggml's block_q* structs); plain types are blocks of one element.
#include "compiler/import/import.h"

namespace llmc {
namespace {

struct DTypeInfo {
  const char *name;
  uint64_t blockElements, blockBytes;
};

const DTypeInfo &info(DType dtype) {
  // In the order of the enum. Q4_0: fp16 scale + 16 bytes of nibbles; Q4_1 adds a minimum; Q5_* add 4 bytes
  // of high bits; Q8_0: scale + 32 bytes; K types: super-blocks of 256.
  static constexpr DTypeInfo table[] = {
      {"f32", 1, 4},      {"f16", 1, 2},      {"bf16", 1, 2},     {"q4_0", 32, 18},
      {"q4_1", 32, 20},   {"q5_0", 32, 22},   {"q5_1", 32, 24},   {"q8_0", 32, 34},
      {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210},
  };
  return table[static_cast<size_t>(dtype)];
}

} // namespace

const char *dtypeName(DType dtype) {
  return info(dtype).name;
}
uint64_t dtypeBlockElements(DType dtype) {
  return info(dtype).blockElements;
}
uint64_t dtypeBlockBytes(DType dtype) {
  return info(dtype).blockBytes;
}

uint64_t dtypeBytes(DType dtype, uint64_t elements) {
  uint64_t blocks = elements / info(dtype).blockElements + (elements % info(dtype).blockElements != 0);
  uint64_t bytes;
  if (__builtin_mul_overflow(blocks, info(dtype).blockBytes, &bytes))
    return UINT64_MAX;
  return bytes;
}

uint64_t parameterCount(const ModelSpec &model) {
  uint64_t total = 0;
  for (const TensorRef &tensor : model.tensors) {
    uint64_t elements = 1;
    for (int64_t dim : tensor.shape)
      elements *= static_cast<uint64_t>(dim);
    total += elements;
  }
  return total;
}

uint64_t kvBytesPerToken(const ModelSpec &model, uint64_t bytesPerElement) {
  return 2 * static_cast<uint64_t>(model.layers) * static_cast<uint64_t>(model.kvHeads) *
         static_cast<uint64_t>(model.headDim) * bytesPerElement;
}

} // namespace llmc
