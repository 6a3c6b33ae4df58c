// Bounded file reading with plain POSIX calls; see files.h.
#include "compiler/import/files.h"

#include "compiler/import/words.h"
#include "compiler/support/error.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace llmc {

uint64_t hashBytes(std::string_view bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

std::string hashHex(std::string_view bytes) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hashBytes(bytes)));
  return text;
}

bool fileExists(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_symlink(path, ignored) && fs::status(path, ignored).type() == fs::file_type::not_found)
    throw Error(path + " is a symbolic link to " + quote(fs::read_symlink(path, ignored).string()) +
                ", which is not there; download the file again");
  return fs::is_regular_file(path, ignored);
}

std::string baseName(const std::string &path) {
  return std::filesystem::path(path).filename().string();
}

InputFile::InputFile(const std::string &path) : path_(path) {
  // O_NONBLOCK: a named pipe in place of a file must not hang the compiler.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0)
    throw Error("cannot open " + path + ": " + std::strerror(errno));
  struct stat info {};
  bool regular = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular) {
    ::close(fd_);
    throw Error(path + " is not a regular file");
  }
  size_ = static_cast<uint64_t>(info.st_size);

  // A clone without git-lfs leaves a text of about 130 bytes in place of each large file.
  constexpr std::string_view kPointer = "version https://git-lfs";
  try {
    if (size_ > kPointer.size() && size_ < 1024) {
      std::string text = read(0, size_);
      if (text.compare(0, kPointer.size(), kPointer) == 0) {
        std::string real = "unknown";
        if (size_t at = text.find("\nsize "); at != std::string::npos)
          real = text.substr(at + 6, text.find_first_not_of("0123456789", at + 6) - (at + 6));
        throw Error(path + " is a git-LFS pointer of " + std::to_string(size_) +
                    " bytes in place of the real file of " + real +
                    " bytes: run \"git lfs install && git lfs pull\" in its folder");
      }
    }
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

InputFile::~InputFile() {
  ::close(fd_);
}

void InputFile::read(uint64_t offset, void *data, uint64_t bytes) const {
  char *to = static_cast<char *>(data);
  for (uint64_t done = 0; done < bytes;) {
    ssize_t got = ::pread(fd_, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Error("cannot read " + path_ + ": " + std::strerror(errno));
    if (got == 0)
      throw Error(path_ + " ended at byte " + std::to_string(offset + done) + " while " +
                  std::to_string(bytes - done) + " more bytes were expected: has it been cut?");
    done += static_cast<uint64_t>(got);
  }
}

std::string InputFile::read(uint64_t offset, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset)
    throw Error(path_ + " has " + std::to_string(size_) + " bytes, too few for " + std::to_string(bytes) +
                " bytes at offset " + std::to_string(offset));
  std::string out(bytes, '\0');
  read(offset, out.data(), bytes);
  return out;
}

std::string readTextFile(const std::string &path, uint64_t maxBytes) {
  InputFile file(path);
  if (file.size() > maxBytes)
    throw Error(path + " has " + humanBytes(file.size()) + "; at most " + humanBytes(maxBytes) +
                " are read for a file of this kind");
  return file.read(0, file.size());
}

} // namespace llmc
