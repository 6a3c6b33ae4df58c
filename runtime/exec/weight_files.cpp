// Opening, checking and positioned reading of weight files.
#include "runtime/exec/weight_files.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/plan/access.h"
#include "runtime/plan/hash.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {
// No checkpoint header comes near this; a plan that claims more is not worth the memory.
constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 30;
} // namespace

WeightFiles::WeightFiles(const plan::LoadedPlan &plan, const std::string &folder) {
  const auto *files = plan.root().files();
  files_.resize(plan::size_of(files));
  try {
    for (uint32_t i = 0; i < files_.size(); ++i) {
      const plan::File &expected = *files->Get(i);
      const std::filesystem::path path{std::string(plan::view_of(expected.path()))};
      files_[i].path = path.is_absolute() || folder.empty() ? plan.file_path(i) : (folder / path).string();
      open_and_check(expected, files_[i]);
    }
  } catch (...) {
    for (File &file : files_)
      if (file.descriptor >= 0)
        close(file.descriptor);
    throw;
  }
}

WeightFiles::~WeightFiles() {
  for (File &file : files_)
    if (file.descriptor >= 0)
      close(file.descriptor);
}

void WeightFiles::open_and_check(const plan::File &expected, File &file) const {
  file.descriptor = open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.descriptor < 0)
    throw Error("cannot open the weight file '" + file.path + "' (" + std::strerror(errno) +
                "): put it back, or compile the plan again where the weights are");
  struct stat status {};
  if (fstat(file.descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    throw Error("the weight file '" + file.path + "' is not a regular file: compile the plan again from a model "
                "folder that holds its weights");
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size != expected.bytes())
    throw Error("the weight file '" + file.path + "' has " + std::to_string(size) + " bytes, but the plan was made "
                "from one of " + std::to_string(expected.bytes()) +
                ": restore that file, or compile the plan again");
  if (expected.header_bytes() > size || expected.header_bytes() > kMaxHeaderBytes)
    throw Error("the plan speaks of a header of " + std::to_string(expected.header_bytes()) + " bytes in the weight "
                "file '" + file.path + "', which has " + std::to_string(size) + ": compile the plan again");
  std::vector<std::byte> header(expected.header_bytes());
  size_t done = 0;
  while (done < header.size()) {
    const ssize_t got = pread(file.descriptor, header.data() + done, header.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      throw Error("cannot read the header of the weight file '" + file.path + "' at byte " + std::to_string(done) +
                  " of " + std::to_string(header.size()) + " (" + (got < 0 ? std::strerror(errno) : "end of file") +
                  "): check the disk");
    done += static_cast<size_t>(got);
  }
  const uint64_t hash = plan::hash_bytes(header.data(), header.size());
  if (hash != expected.header_hash())
    throw Error("the weight file '" + file.path + "' has changed since the plan was made: the hash of its header is " +
                plan::hash_hex(hash) + ", the plan's is " + plan::hash_hex(expected.header_hash()) +
                "; restore that file, or compile the plan again");
}

void WeightFiles::read(uint32_t index, uint64_t offset, void *out, size_t bytes) const {
  const File &file = files_.at(index);
  auto *to = static_cast<std::byte *>(out);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(file.descriptor, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Error("cannot read " + std::to_string(bytes - done) + " bytes at " + std::to_string(offset + done) +
                  " of the weight file '" + file.path + "' (" + std::strerror(errno) + "): check the disk");
    if (got == 0)
      throw Error("the weight file '" + file.path + "' ends at byte " + std::to_string(offset + done) + ", but " +
                  std::to_string(bytes - done) + " more are needed: it changed while it was read; restore it, or "
                  "compile the plan again");
    done += static_cast<size_t>(got);
  }
}

} // namespace llmrt::exec
