// Entry points of the importers. They read headers only (never weight bytes) and report every problem as an
// llmc::Error whose message names the file, the numbers and the remedy.
#pragma once

#include "compiler/import/model_spec.h"

#include <string>

namespace llmc {

enum class LoadFormat { Auto, Dummy };

// `path` is a HuggingFace folder, a folder holding exactly one GGUF model, or a .gguf file.
// With LoadFormat::Dummy a config.json alone is enough; every tensor gets file = -1.
ModelSpec importModel(const std::string &path, LoadFormat format = LoadFormat::Auto);

// A short name for messages and reports: "bf16", "q4_1".
const char *dtypeName(DType dtype);

// Bytes that `elements` consecutive elements take in a file (a multiple of the block for quantised types).
uint64_t dtypeBytes(DType dtype, uint64_t elements);

// Elements per block (1 for plain types) and bytes per block.
uint64_t dtypeBlockElements(DType dtype);
uint64_t dtypeBlockBytes(DType dtype);

// Parameters of the model: elements of all its tensors, a tied embedding counted once.
uint64_t parameterCount(const ModelSpec &model);

// 2 (K and V) × layers × KV heads × head_dim × bytes per element, before any sharding.
uint64_t kvBytesPerToken(const ModelSpec &model, uint64_t bytesPerElement);

} // namespace llmc
