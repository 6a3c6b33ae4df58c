// llmc: the compiler's command line. Each subcommand stands in a file of its own.
#include "tools/llmc/commands.h"

#include "compiler/import/words.h"
#include "tools/llmc/output.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <new>

// A word of the command line that is nearly an option of the command in use, or nearly a command; else the commands
// that there are.
static std::string nearlyMeant(const CLI::App &command, const std::vector<std::string> &words) {
  std::vector<std::string> known;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      known.push_back("--" + name);
  for (const CLI::App *other : command.get_subcommands({}))
    known.push_back(other->get_name());
  for (const std::string &word : words) {
    const std::string name = word.substr(0, word.find('='));
    const bool option = name.size() > 2 && name[0] == '-';
    if ((!option && command.get_subcommands({}).empty()) || std::find(known.begin(), known.end(), name) != known.end())
      continue; // a value, or right as it is
    const std::string meant = option && name[1] != '-' ? "-" + name : name; // -tp for --tp
    if (std::string nearest = llmc::nearestWord(meant, known); !nearest.empty())
      return "; did you mean " + nearest + " instead of " + name + "?";
  }
  std::string commands;
  for (const CLI::App *other : command.get_subcommands({}))
    commands += (commands.empty() ? ": " : ", ") + other->get_name();
  return commands;
}

// What is wrong with the command line, and where its help is.
static void printUsageError(const CLI::App &app, const CLI::ParseError &error, const std::vector<std::string> &words) {
  const CLI::App *command = &app;
  for (const CLI::App *sub : app.get_subcommands({}))
    if (sub->parsed())
      command = sub;
  const bool unknown = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) || command == &app;
  std::fprintf(stderr, "llmc: error: %s%s\nTry: %s --help\n", error.what(), unknown ? nearlyMeant(*command, words).c_str() : "",
               command == &app ? "llmc" : ("llmc " + command->get_name()).c_str());
}

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
  } catch (const CLI::Success &e) { // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError &e) {
    printUsageError(app, e, {argv + 1, argv + argc});
    return 2;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "llmc: error: this process ran out of memory\n");
    return 1;
  } catch (const std::exception &e) { // llmc::Error and llmrt::Error for nearly all
    std::fprintf(stderr, "llmc: error: %s\n", e.what());
    return 1;
  }
  return status;
}
