// llmc: the compiler's command line. Each subcommand stands in a file of its own.
#include "tools/llmc/commands.h"

#include "tools/llmc/output.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <new>

int main(int argc, char **argv) {
  CLI::App app{"llmc compiles a language model, a machine and limits into an execution plan, with no GPU present.\n"
               "\n"
               "  cd MODEL                                        # a HuggingFace folder, or one with a GGUF file\n"
               "  llmc compile --topo topo.json --tp 3 --pp 2     # writes plan.fb, prints layout and memory\n"
               "  llmc verify plan.fb                             # proves it consistent\n"
               "  llmrt serve plan.fb                             # serves it\n",
               "llmc"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "llmc " LLMC_VERSION);
  app.set_help_all_flag("--help-all", "Help of every subcommand");
  int status = 0;
  std::string commandLine = "llmc";
  for (int i = 1; i < argc; ++i)
    commandLine += std::string(" ") + argv[i];
  llmc::addCompileCommand(app, commandLine, status);
  llmc::addTopologyCommand(app);
  llmc::addPlanCommands(app, status);
  try {
    app.parse(argc, argv);
    llmc::finishStandardOutput();
  } catch (const CLI::ParseError &e) {
    int code = app.exit(e);
    return code == 0 ? 0 : 2;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "llmc: error: this process ran out of memory\n");
    return 1;
  } catch (const std::exception &e) { // llmc::Error and llmrt::Error for nearly all
    std::fprintf(stderr, "llmc: error: %s\n", e.what());
    return 1;
  }
  return status;
}
