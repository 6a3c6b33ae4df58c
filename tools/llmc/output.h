// What llmc leaves behind: files that are whole or not there, and a standard output that took all of it. Both
// throw llmc::Error with the system's reason and the way out.
#pragma once

#include <cstddef>
#include <string>

namespace llmc {

// Writes a file through a temporary one beside it, so that readers see the old file or the new one, and a failure
// leaves the old. A symbolic link stays one: what it names is written. Devices and pipes are written as they are.
void writeFile(const std::string &path, const char *data, size_t size);

// Flushes standard output; throws where it could not be written (a full disk behind a redirection).
void finishStandardOutput();
} // namespace llmc
