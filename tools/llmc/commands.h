// Subcommands of llmc. Each registers itself with the application and, when chosen, runs and sets `status`.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace llmc {
void addCompileCommand(CLI::App &app, const std::string &commandLine, int &status);
} // namespace llmc
