// `llmc compile`: options to CompileOptions, the plan to a file, layout and ledger to the terminal.
#include "tools/llmc/commands.h"

#include "compiler/pipeline/compile.h"
#include "compiler/support/error.h"
#include "tools/llmc/output.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>

using namespace llmc;

static int runCompile(const CompileOptions &options, const std::string &output) {
  if (output == "-" && options.stopAfter == StopAfter::Plan)
    throw Error("-o - is for IR (--compile-to); standard output takes the report, so name a file for the plan");
  CompileResult result = compileModel(options);
  for (const std::string &warning : result.warnings)
    std::fprintf(stderr, "llmc: warning: %s\n", warning.c_str());
  if (options.stopAfter != StopAfter::Plan) {
    if (output.empty() || output == "-")
      std::fwrite(result.mlir.data(), 1, result.mlir.size(), stdout);
    else
      writeFile(output, result.mlir.data(), result.mlir.size());
    return 0;
  }
  std::string path = output.empty() ? "plan.fb" : output;
  std::string explanation = provePlan(result.plan);
  writeFile(path, reinterpret_cast<const char *>(result.plan.data()), result.plan.size());
  std::printf("%s\nWritten to %s\n", explanation.c_str(), path.c_str());
  return 0;
}

void llmc::addCompileCommand(CLI::App &app, const std::string &commandLine, int &status) {
  auto options = std::make_shared<CompileOptions>();
  auto output = std::make_shared<std::string>();
  options->commandLine = commandLine;
  CLI::App *cmd = app.add_subcommand(
      "compile", "Compile a model for a topology into plan.fb\n"
                 "\n"
                 "Examples:\n"
                 "  llmc compile                                    # this folder's model, one CPU rank\n"
                 "  llmc compile --topo 6x-pcie-24gb.json --tp 3 --pp 2\n"
                 "  llmc compile --model /models/Qwen2.5-14B --topo t.json --tp 4 --max-model-len 16384 -o q14.fb\n"
                 "  llmc compile --load-format dummy --tp 2         # config.json alone: random weights\n"
                 "  llmc compile --tp 3 --compile-to=dist           # stop after a phase, print its IR\n");
  cmd->add_option("--model", options->model, "Model: a HuggingFace folder, a folder with one GGUF, or a .gguf file")
      ->capture_default_str();
  cmd->add_option("--topo", options->topology,
                  "Topology file (docs/topology.md); default: CPU ranks sharing this machine");
  cmd->add_option("--tp", options->tp, "Ranks that share each layer (tensor parallelism)")->capture_default_str();
  cmd->add_option("--pp", options->pp, "Pipeline stages")->capture_default_str();
  cmd->add_option("--max-model-len", options->maxModelLen,
                  "Tokens of prompt and answer together; default: the model's own, or the largest that fits");
  cmd->add_option("--max-num-seqs", options->maxNumSeqs, "Sequences that run at once; default 64 on CPUs, 256 on GPUs");
  cmd->add_option("--max-batched-tokens", options->maxBatchedTokens,
                  "Tokens of one step; default 512 on CPUs, 8192 on GPUs, fewer there in float32 with long contexts");
  cmd->add_option("--page-size", options->pageSize, "Tokens of one KV page")->capture_default_str();
  cmd->add_option("--memory-utilization", options->memoryUtilization, "Share of each device's memory to use")
      ->capture_default_str();
  cmd->add_option("--dtype", options->dtype,
                  "Type of weights and KV cache; auto is the checkpoint's own. Of quantised files auto keeps Q8_0, Q4_1 and "
                  "Q4_0 weights as they are on CPUs, and makes the rest bfloat16")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}))
      ->capture_default_str();
  cmd->add_option("--served-model-name", options->servedModelName, "Name in the API; default: the model's folder, or its file without ending");
  cmd->add_option("--load-format", "auto, or dummy: no weight files needed, random weights")
      ->check(CLI::IsMember({"auto", "dummy"}))
      ->type_name("TEXT")
      ->each([options](const std::string &value) { options->dummyWeights = value == "dummy"; });
  cmd->add_option("-o,--output", *output, "Where the plan goes; default plan.fb (or standard output for IR)");
  cmd->add_option("--compile-to", "Stop after a phase and print its IR; plan (the default) is the whole way")
      ->check(CLI::IsMember({"llm", "dist", "exec", "plan"}))
      ->type_name("TEXT")
      ->each([options](const std::string &value) {
        options->stopAfter = value == "llm"    ? StopAfter::Llm
                             : value == "dist" ? StopAfter::Dist
                             : value == "exec" ? StopAfter::Exec
                                               : StopAfter::Plan;
      });
  cmd->add_flag("--print-ir-after-all", options->printIrAfterAll, "Print the IR after every pass (to stderr)");
  cmd->add_flag("--mlir-timing", options->timing, "Print the time of every pass (to stderr)");
  cmd->callback([options, output, &status] {
    std::string path = output->empty() ? "plan.fb" : *output;
    std::error_code failure;
    options->planFolder = std::filesystem::absolute(path, failure).parent_path().string();
    if (failure)
      throw Error("the working folder cannot be named (" + failure.message() + "): was it removed? Change to another");
    status = runCompile(*options, *output);
  });
}
