// Reads what nvidia-smi prints of a machine's GPUs and of the links between them, and writes a topology file from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct SmiGpu {
  int64_t index = 0;
  std::string name, uuid, pciId; // uuid and pciId may be empty
  uint64_t memoryMib = 0;
  std::string capability; // "9.0"
};

// The table of `nvidia-smi --query-gpu=index,name,uuid,pci.bus_id,memory.total,compute_cap --format=csv`, columns in any
// order, more of them allowed; index, uuid and pci.bus_id may be missing. Throws llmc::Error, as all here.
std::vector<SmiGpu> parseSmiGpus(const std::string &text, const std::string &file);

// kinds[a][b] of GPUs a and b, as the table has them; "X" where a = b.
using SmiLinks = std::vector<std::vector<std::string>>;

// The table of `nvidia-smi topo -m`: tabs or spaces, codes that underline its header, rows and columns of NICs, rows that
// end early. `gpus` is how many there must be.
SmiLinks parseSmiLinks(const std::string &text, const std::string &file, size_t gpus);

// A topology file of one host. Speeds come from data sheets (gpu_models.h); memoryBandwidth and peakFlops ("936GB/s",
// "71TFLOPS", or empty) are for GPUs that are not in them.
std::string smiTopology(const std::vector<SmiGpu> &gpus, const SmiLinks &links, const std::string &memoryBandwidth,
                        const std::string &peakFlops);

} // namespace llmc
