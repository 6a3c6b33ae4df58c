// Logging through spdlog, which only this file includes (its headers are slow to compile).
#include "runtime/serve/log.h"

#include <cstdio>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace llmrt::serve {

static spdlog::logger &logger() {
  static auto instance = [] {
    auto made = std::make_shared<spdlog::logger>("llmrt", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *instance;
}

void log_info(const std::string &message) { logger().info(message); }
void log_warning(const std::string &message) { logger().warn(message); }
void log_error(const std::string &message) { logger().error(message); }

std::string printable(const std::string &text, size_t limit) {
  std::string out;
  for (char ch : text) {
    if (out.size() >= limit)
      return out + "...";
    auto c = static_cast<unsigned char>(ch);
    if (c >= 0x20 && c != 0x7f) {
      out += ch;
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", c);
    out += escaped;
  }
  return out;
}

} // namespace llmrt::serve
