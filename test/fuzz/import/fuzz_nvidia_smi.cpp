// The input is a list of GPUs as nvidia-smi writes it, a NUL, and the table of its topo -m. What is taken from them makes a
// topology file that reads.
#include "compiler/import/nvidia_smi.h"
#include "compiler/import/topology.h"
#include "compiler/support/error.h"

#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  const size_t end = std::min(text.find('\0'), text.size());
  std::string made;
  try {
    const std::vector<llmc::SmiGpu> gpus = llmc::parseSmiGpus(text.substr(0, end), "gpus.csv");
    llmc::SmiLinks links(1, {"X"});
    if (gpus.size() > 1)
      links = llmc::parseSmiLinks(text.substr(end), "links.txt", gpus.size());
    made = llmc::smiTopology(gpus, links, "936GB/s", "71TFLOPS");
  } catch (const llmc::Error &) {
    return 0;
  }
  try {
    llmc::parseTopology(made, "topo.json");
  } catch (const llmc::Error &error) {
    // Two GPUs of one uuid, or a capability that none has, are for the reader of topologies to refuse.
    if (std::string_view(error.what()).find("not valid JSON") != std::string_view::npos)
      std::abort();
  }
  return 0;
}
