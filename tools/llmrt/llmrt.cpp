// llmrt: executes plans. Errors are one line on stderr, status 1; a command line that makes no sense gives
// status 2.
#include "runtime/support/error.h"
#include "tools/llmrt/commands.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

int main(int argc, char **argv) {
  CLI::App app{
      "llmrt executes a plan that llmc compiled: it loads each rank's slices of the weights and answers.\n"
      "\n"
      "Examples:\n"
      "  llmrt serve plan.fb                              # OpenAI-compatible API on 127.0.0.1:8000\n"
      "  llmrt run plan.fb --prompt 'Who are you?'        # asks a chat model, once\n"
      "  llmrt run plan.fb --raw --prompt 'Once upon'     # continues a text\n"
      "\n"
      "A plan is made in a model's folder by: llmc compile --topo topo.json --tp 3 --pp 2",
      "llmrt"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "llmrt " LLMC_VERSION);
#ifdef LLMRT_HAVE_SERVE
  llmrt::tool::add_serve_command(app);
#endif
  llmrt::tool::add_run_command(app);
  llmrt::tool::add_bench_command(app);
  llmrt::tool::add_profile_command(app);
  try {
    app.parse(argc, argv);
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) // a full disk behind a redirection
      throw llmrt::Error(std::string("cannot write all of standard output") + (errno ? std::string(": ") + std::strerror(errno) : "") +
                         "; what came out of it is not whole");
  } catch (const CLI::Success &e) { // --help, --version
    return app.exit(e);
  } catch (const CLI::Error &e) {
    std::fprintf(stderr, "llmrt: error: %s\nTry: llmrt --help, or --help after a subcommand.\n", e.what());
    return 2;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "llmrt: error: this process ran out of memory\n");
    return 1;
  } catch (const std::exception &e) {
    std::fprintf(stderr, "llmrt: error: %s\n", e.what());
    return 1;
  }
  return 0;
}
