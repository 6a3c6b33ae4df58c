// Regions by anonymous mmap, with huge pages where the kernel grants them.
#include "runtime/support/region.h"

#include "runtime/support/error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace llmrt {

Region::Region(size_t bytes, const std::string &purpose) {
  if (bytes == 0)
    return;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t rounded = (bytes + page - 1) / page * page;
  void *address = MAP_FAILED;
  if (rounded >= bytes)
    address = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    throw Error("cannot map " + std::to_string(bytes) + " bytes for " + purpose + " (" + std::strerror(errno) +
                "): free memory, or compile the plan again with a smaller --memory-utilization");
  madvise(address, rounded, MADV_HUGEPAGE); // advice: no harm where it is refused
  data_ = static_cast<std::byte *>(address);
  size_ = bytes;
  mapped_ = rounded;
}

Region::~Region() {
  if (data_)
    munmap(data_, mapped_);
}

} // namespace llmrt
