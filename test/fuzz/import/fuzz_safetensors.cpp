// The input is the JSON of a safetensors header; the file is taken to hold four times as many bytes.
#include "compiler/import/safetensors.h"
#include "compiler/support/error.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  const uint64_t fileSize = 8 + 4 * static_cast<uint64_t>(size);
  try {
    llmc::SafetensorsHeader header = llmc::parseSafetensorsHeader(text, fileSize, "fuzz");
    // What the parser lets through must lie inside the file and not overlap.
    uint64_t reached = header.dataStart;
    for (const llmc::SafetensorsEntry &entry : header.tensors) {
      if (entry.begin > entry.end || entry.end > fileSize ||
          (entry.begin < reached && entry.begin != entry.end))
        std::abort();
      reached = entry.end > reached ? entry.end : reached;
    }
  } catch (const llmc::Error &) {
  }
  return 0;
}
