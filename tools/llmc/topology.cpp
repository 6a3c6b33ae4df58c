// `llmc topology`: a topology file from what nvidia-smi prints.
#include "tools/llmc/commands.h"

#include "compiler/import/files.h"
#include "compiler/import/nvidia_smi.h"
#include "compiler/import/topology.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"
#include "tools/llmc/output.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

using namespace llmc;

namespace {
struct Options {
  std::string gpus, links, output, memoryBandwidth, peakFlops;
};
} // namespace

static void run(const Options &options) {
  constexpr uint64_t kMostBytes = 1u << 20;
  const std::vector<SmiGpu> gpus = parseSmiGpus(readTextFile(options.gpus, kMostBytes), options.gpus);
  SmiLinks links(1, {"X"});
  if (!options.links.empty())
    links = parseSmiLinks(readTextFile(options.links, kMostBytes), options.links, gpus.size());
  else if (gpus.size() > 1)
    throw Error(options.gpus + " lists " + std::to_string(gpus.size()) +
                " GPUs: give the links between them with --links, a file that holds what nvidia-smi topo -m prints");
  for (const std::string &speed : {options.memoryBandwidth, options.peakFlops})
    if (!isPlainText(speed))
      throw Error("the speed " + quote(speed) + " is no text; write it like 936GB/s or 71TFLOPS");
  const std::string text = smiTopology(gpus, links, options.memoryBandwidth, options.peakFlops);
  parseTopology(text, options.output.empty() ? "the topology" : options.output); // values of options have been read by nobody yet
  if (options.output.empty() || options.output == "-")
    std::fwrite(text.data(), 1, text.size(), stdout);
  else
    writeFile(options.output, text.data(), text.size());
}

void llmc::addTopologyCommand(CLI::App &app) {
  auto options = std::make_shared<Options>();
  CLI::App *cmd = app.add_subcommand(
      "topology", "Write a topology file from what nvidia-smi prints on a machine\n"
                  "\n"
                  "Speeds are those of data sheets: measure them where it matters, and say \"p2p\": true of a PCIe link\n"
                  "once copies over it have been verified (docs/topology.md).\n"
                  "\n"
                  "Example:\n"
                  "  nvidia-smi --query-gpu=index,name,uuid,pci.bus_id,memory.total,compute_cap --format=csv > gpus.csv\n"
                  "  nvidia-smi topo -m > links.txt\n"
                  "  llmc topology --gpus gpus.csv --links links.txt -o topo.json\n");
  cmd->add_option("--gpus", options->gpus, "What nvidia-smi --query-gpu prints as CSV, its header included")->required();
  cmd->add_option("--links", options->links, "What nvidia-smi topo -m prints; not needed for one GPU");
  cmd->add_option("--memory-bandwidth", options->memoryBandwidth, "Of GPUs whose speed is not known, such as 936GB/s");
  cmd->add_option("--peak-flops", options->peakFlops, "The same, dense bf16, such as 71TFLOPS");
  cmd->add_option("-o,--output", options->output, "Where the file goes; default standard output");
  cmd->callback([options] { run(*options); });
}
