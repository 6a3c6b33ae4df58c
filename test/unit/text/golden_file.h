// Reads the gzipped fixtures of test/golden/text: LEB128 numbers and length-prefixed strings.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
#include <zlib.h>

namespace llmrt::text::test {

inline std::string read_gzip(const std::string &path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file)
    throw std::runtime_error("cannot open " + path);
  std::string out;
  char buffer[1 << 16];
  int n = 0;
  while ((n = gzread(file, buffer, sizeof buffer)) > 0)
    out.append(buffer, static_cast<size_t>(n));
  bool bad = n < 0;
  gzclose(file);
  if (bad)
    throw std::runtime_error("cannot decompress " + path);
  return out;
}

inline std::string golden_path(const std::string &name) {
  return std::string(LLMC_SOURCE_DIR) + "/test/golden/text/" + name;
}

class GoldenReader {
public:
  explicit GoldenReader(const std::string &name) : data_(read_gzip(golden_path(name))) {}

  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      auto byte = static_cast<unsigned char>(data_.at(pos_++));
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80)
        return value;
    }
  }
  std::string text() {
    size_t n = number();
    std::string out = data_.substr(pos_, n);
    pos_ += n;
    return out;
  }
  std::vector<int32_t> ids() {
    std::vector<int32_t> out(number());
    for (int32_t &id : out)
      id = static_cast<int32_t>(number());
    return out;
  }
  bool at_end() const { return pos_ == data_.size(); }

private:
  std::string data_;
  size_t pos_ = 0;
};

inline const std::vector<std::string> &golden_strings() {
  static const std::vector<std::string> strings = [] {
    GoldenReader reader("strings.bin.gz");
    std::vector<std::string> out(reader.number());
    for (std::string &s : out)
      s = reader.text();
    return out;
  }();
  return strings;
}

} // namespace llmrt::text::test
