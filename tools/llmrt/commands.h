// The subcommands of llmrt. Each registers its options with the parser and runs when the parse is done; what
// goes wrong is thrown as llmrt::Error, what was typed wrong as CLI::Error.
#pragma once

#include <CLI/CLI.hpp>

namespace llmrt::tool {

void add_run_command(CLI::App &app);
void add_serve_command(CLI::App &app);
void add_bench_command(CLI::App &app);
void add_profile_command(CLI::App &app);

} // namespace llmrt::tool
