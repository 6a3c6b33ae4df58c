// Subcommands of llmc. Each registers itself with the application and, when chosen, runs and sets `status`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace llmc {
void addCompileCommand(CLI::App &app, const std::string &commandLine, int &status);
void addTopologyCommand(CLI::App &app);
void addPlanCommands(CLI::App &app, int &status); // verify, dump, explain

// Proves a plan just made, and returns what `llmc explain` prints of it. Throws llmc::Error when it is refused.
std::string provePlan(const std::vector<uint8_t> &bytes);
} // namespace llmc
