// What the four supported families have in common: which tensors a model of given dimensions consists of.
// Every importer checks its files against this list, and --load-format dummy is made from it.
#pragma once

#include "compiler/import/import.h"

namespace llmc {

struct ExpectedTensor {
  std::string name; // canonical, see model_spec.h
  std::vector<int64_t> shape;
};

// In a fixed order: embedding, layers, norm, head.
std::vector<ExpectedTensor> expectedTensors(const ModelSpec &model);

const char *familyName(Family family); // "llama", "mistral", "qwen2", "qwen3"

// Checks what holds for every family: positive and bounded dimensions, query heads a multiple of KV heads, an
// even head dimension, windows and frequencies as many as they must be. `where` opens the message.
void checkDimensions(const ModelSpec &model, const std::string &where);

} // namespace llmc
