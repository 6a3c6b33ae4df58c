// The input is a config.json, imported with dummy weights.
#include "compiler/import/hf_import.h"
#include "compiler/support/error.h"

#include <cmath>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    llmc::JsonFile file(std::string_view(reinterpret_cast<const char *>(data), size), "config.json");
    llmc::ModelSpec model;
    llmc::readHfConfig(file.root(), model);
    llmc::dummyWeights(model);
    // What is accepted is usable: as many frequencies and windows as promised, positive shapes.
    if (model.rope.invFreq.size() != static_cast<size_t>(model.headDim / 2) ||
        model.attention.size() != static_cast<size_t>(model.layers) || model.qHeads % model.kvHeads != 0)
      std::abort();
    for (float frequency : model.rope.invFreq)
      if (!std::isfinite(frequency))
        std::abort();
    for (const llmc::TensorRef &tensor : model.tensors)
      for (int64_t dim : tensor.shape)
        if (dim < 1)
          std::abort();
  } catch (const llmc::Error &) {
  }
  return 0;
}
