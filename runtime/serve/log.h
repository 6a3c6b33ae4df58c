// The server's log: one line per event on stderr, with time and level.
#pragma once

#include <string>

namespace llmrt::serve {

void log_info(const std::string &message);
void log_warning(const std::string &message);
void log_error(const std::string &message);

/// Text from a client, safe for one line of a log: control characters escaped, at most `limit` bytes.
std::string printable(const std::string &text, size_t limit = 200);

} // namespace llmrt::serve
