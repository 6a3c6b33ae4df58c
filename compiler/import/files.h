// Bounded reading of files for the importers, with the checks that every weight or text file needs: a missing
// file, a folder in its place, a git-LFS pointer, a size over the limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace llmc {

// XXH64 with seed 0.
uint64_t hashBytes(std::string_view bytes);
std::string hashHex(std::string_view bytes);

// A regular file, symbolic links followed. Throws for a link to nothing, as caches of hubs have after a download that
// was broken off: the file is meant to be there.
bool fileExists(const std::string &path);

// The whole file as text. Throws for a git-LFS pointer and for more than `maxBytes`.
std::string readTextFile(const std::string &path, uint64_t maxBytes);

// The last component, for messages.
std::string baseName(const std::string &path);

// A file open for reading at given offsets.
class InputFile {
public:
  explicit InputFile(const std::string &path); // throws when it cannot be opened or is a git-LFS pointer
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  const std::string &path() const { return path_; }
  uint64_t size() const { return size_; }
  // Reads exactly `bytes`; throws when the file ends first.
  void read(uint64_t offset, void *data, uint64_t bytes) const;
  std::string read(uint64_t offset, uint64_t bytes) const;

private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

} // namespace llmc
