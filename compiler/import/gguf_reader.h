// Bounded parser of GGUF v2 and v3 headers (metadata and tensor infos; no weight bytes). Every count, length
// and offset is checked against what the file can hold before anything is allocated for it.
// Format: ggml's docs/gguf.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

// Where the parser gets bytes from: a file, or memory in tests and fuzzers.
class GgufSource {
public:
  virtual ~GgufSource() = default;
  virtual uint64_t size() const = 0;
  virtual void read(uint64_t offset, void *data, uint64_t bytes) const = 0; // within size()
};

struct GgufValue {
  enum class Kind { Int, Float, Bool, String, Ints, Floats, Strings, Skipped };
  Kind kind = Kind::Skipped; // Skipped: nested or long arrays under keys that nobody reads
  int64_t integer = 0;       // Int and Bool; a uint64 above INT64_MAX is kept as Float
  double number = 0;         // Int and Float
  std::string text;
  std::vector<int64_t> ints; // Ints, arrays of booleans included
  std::vector<float> floats;
  std::vector<std::string> strings;
};

struct GgufTensor {
  std::string name;
  std::vector<int64_t> shape; // outermost first: the file's order reversed
  uint32_t type = 0;          // ggml type number
  uint64_t offset = 0;        // absolute
};

struct GgufHeader {
  std::string name; // for messages
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;
  uint64_t dataStart = 0;
  uint64_t headerBytes = 0; // from the start of the file to the end of the tensor infos

  // Typed access; absent gives nullopt, another kind an error that names file and key.
  const GgufValue *find(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
};

GgufHeader parseGguf(const GgufSource &source, const std::string &name);

// "Q4_K" for 12; "type 99" for a number that ggml has not given out.
std::string ggufTypeName(uint32_t type);

} // namespace llmc
