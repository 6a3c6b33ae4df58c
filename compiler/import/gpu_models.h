// What data sheets say of GPUs that people serve models on: enough for a first topology file where nothing was measured.
#pragma once

#include <string_view>

namespace llmc {

struct GpuModel {
  const char *name;     // as in nvidia-smi's, without "NVIDIA" and the like
  double memoryGBps;    // of its memory
  double tflops;        // dense bf16 (of float16 before Ampere)
  double nvlinkGBps;    // of one NVLink in one direction; 0: it has none
  double pcieGBps;      // of its PCIe slot in one direction, about what copies reach
};

// The model that a name of nvidia-smi's holds as whole words, the longest of several; null for one not known.
const GpuModel *findGpuModel(std::string_view name);

} // namespace llmc
