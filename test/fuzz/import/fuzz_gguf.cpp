// The input is a whole GGUF file: first the header parser on memory, then the importer on an anonymous file.
#include "compiler/import/gguf_reader.h"
#include "compiler/import/hf_import.h"
#include "compiler/support/error.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace {

class Memory final : public llmc::GgufSource {
public:
  Memory(const uint8_t *data, size_t size) : data_(data), size_(size) {}
  uint64_t size() const override { return size_; }
  void read(uint64_t offset, void *to, uint64_t bytes) const override {
    if (offset > size_ || bytes > size_ - offset)
      std::abort();
    std::memcpy(to, data_ + offset, bytes);
  }

private:
  const uint8_t *data_;
  size_t size_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    llmc::parseGguf(Memory(data, size), "fuzz");
  } catch (const llmc::Error &) {
    return 0;
  }
  static const int file = memfd_create("fuzz.gguf", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    llmc::ModelSpec model = llmc::importGguf(path);
    for (const llmc::TensorRef &tensor : model.tensors)
      if (tensor.bytes > size || tensor.offset > size - tensor.bytes)
        std::abort();
  } catch (const llmc::Error &) {
  }
  return 0;
}
