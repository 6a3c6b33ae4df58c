// The header of a safetensors file: 8 bytes of little-endian length, then a JSON object from tensor names to
// {dtype, shape, data_offsets}, then the data. Format: huggingface/safetensors, "Format" in its README.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class InputFile;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;           // as the file spells it: "BF16", "F8_E4M3"
  std::vector<int64_t> shape;  // outermost first
  uint64_t begin = 0, end = 0; // absolute byte offsets in the file, end exclusive
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors; // in file order of their data
  uint64_t headerHash = 0;               // XXH64 over length field and JSON
  uint64_t headerBytes = 0;              // length field and JSON
  uint64_t dataStart = 0;
};

constexpr uint64_t kMaxSafetensorsHeader = 100'000'000; // the format's own limit

// `header` is the JSON text, `fileSize` the size of the whole file. Checks names, offsets (in range, sizes
// that match dtype and shape, no overlap) and names the missing bytes of a truncated file.
SafetensorsHeader parseSafetensorsHeader(std::string_view header, uint64_t fileSize, const std::string &name);
SafetensorsHeader readSafetensorsHeader(const InputFile &file);

// Bytes per element of a dtype name, 0 for one that this compiler has never heard of.
uint64_t safetensorsElementBytes(std::string_view dtype);

} // namespace llmc
