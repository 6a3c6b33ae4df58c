#include "tools/llmc/output.h"

#include "compiler/support/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace llmc;
namespace fs = std::filesystem;

[[noreturn]] static void fail(const std::string &path, int error, size_t size) {
  std::string remedy;
  if (error == ENOENT || error == ENOTDIR)
    remedy = "; make the folder first, or name another file with -o";
  else if (error == EACCES || error == EPERM || error == EROFS)
    remedy = "; name a file in a folder that you may write to with -o";
  else if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    remedy = "; it has " + std::to_string(size) + " bytes: make room, or name a file elsewhere with -o";
  throw Error("cannot write " + path + ": " + std::strerror(error) + remedy);
}

// 0, or the errno of the write that failed.
static int writeAll(int fd, const char *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t wrote = ::write(fd, data + done, size - done);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0)
      return errno;
    done += static_cast<size_t>(wrote);
  }
  return 0;
}

static int closeAfter(int fd, int error) {
  if (::close(fd) != 0 && error == 0)
    error = errno; // some file systems tell of a full disk only here
  return error;
}

void llmc::writeFile(const std::string &path, const char *data, size_t size) {
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (fs::is_directory(status))
    throw Error(path + " is a folder: name a file in it with -o, such as " + (fs::path(path) / "plan.fb").string());
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
      fail(path, errno, size);
    if (int error = closeAfter(fd, writeAll(fd, data, size)))
      fail(path, error, size);
    return;
  }
  fs::path target = path;
  for (int links = 0; links < 40 && fs::is_symlink(target, ec); ++links) // one to nothing yet, too
    target = target.parent_path() / fs::read_symlink(target, ec);
  const std::string temporary = target.string() + ".tmp" + std::to_string(::getpid());
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    fail(path, errno, size);
  int error = closeAfter(fd, writeAll(fd, data, size));
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0)
    error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    fail(path, error, size);
  }
}

void llmc::finishStandardOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return;
  // An earlier write may have failed, whose reason is gone by now.
  throw Error(std::string("cannot write all of standard output") + (errno ? std::string(": ") + std::strerror(errno) : "") +
              "; what came out of it is not whole");
}
