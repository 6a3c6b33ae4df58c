// Magic, header length, a Python dictionary padded so that the data is aligned to 64 bytes, the data.
#include "tools/llmrt/npy.h"

#include "runtime/support/error.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace llmrt::tool {

static_assert(std::endian::native == std::endian::little, "'<f4' below says little-endian");

void write_npy(const std::string &path, const std::vector<float> &data, size_t rows, size_t cols) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(cols) + "), }";
  constexpr size_t kPrefix = 10; // magic, version, length
  while ((kPrefix + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix += static_cast<char>(header.size() & 0xff);
  prefix += static_cast<char>(header.size() >> 8);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << prefix << header;
  out.write(reinterpret_cast<const char *>(data.data()),
            static_cast<std::streamsize>(rows * cols * sizeof(float)));
  out.close();
  if (!out)
    throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

} // namespace llmrt::tool
