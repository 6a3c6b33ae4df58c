#include "compiler/import/gpu_models.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace llmc {
namespace {

constexpr double kGen3 = 12, kGen4 = 24, kGen5 = 50; // PCIe x16

constexpr GpuModel kModels[] = {
    {"V100-SXM2-16GB", 900, 125, 25, kGen3},
    {"V100-SXM2-32GB", 900, 125, 25, kGen3},
    {"V100-PCIE-16GB", 900, 112, 0, kGen3},
    {"V100-PCIE-32GB", 900, 112, 0, kGen3},
    {"T4", 320, 65, 0, kGen3},
    {"Quadro RTX 8000", 672, 130, 25, kGen3},
    {"A100-SXM4-40GB", 1555, 312, 25, kGen4},
    {"A100-SXM4-80GB", 2039, 312, 25, kGen4},
    {"A100-PCIE-40GB", 1555, 312, 25, kGen4},
    {"A100-PCIE-80GB", 1935, 312, 25, kGen4},
    {"A100 80GB PCIe", 1935, 312, 25, kGen4},
    {"A800-SXM4-80GB", 2039, 312, 25, kGen4},
    {"A30", 933, 165, 25, kGen4},
    {"A10", 600, 125, 0, kGen4},
    {"A10G", 600, 70, 0, kGen4},
    {"A40", 696, 150, 14, kGen4},
    {"RTX A6000", 768, 155, 14, kGen4},
    {"RTX A5000", 768, 111, 14, kGen4},
    {"RTX A4000", 448, 77, 0, kGen4},
    {"GeForce RTX 3090", 936, 71, 14, kGen4},
    {"GeForce RTX 3090 Ti", 1008, 80, 14, kGen4},
    {"GeForce RTX 4080", 717, 97, 0, kGen4},
    {"GeForce RTX 4090", 1008, 165, 0, kGen4},
    {"GeForce RTX 5090", 1792, 210, 0, kGen5},
    {"L4", 300, 121, 0, kGen4},
    {"L40", 864, 181, 0, kGen4},
    {"L40S", 864, 362, 0, kGen4},
    {"RTX 6000 Ada Generation", 960, 364, 0, kGen4},
    {"H100 80GB HBM3", 3350, 989, 25, kGen5},
    {"H100 PCIe", 2039, 756, 25, kGen5},
    {"H100 NVL", 3938, 835, 25, kGen5},
    {"H800", 3350, 989, 25, kGen5},
    {"H20", 4000, 148, 25, kGen5},
    {"H200", 4800, 989, 25, kGen5},
    {"H200 NVL", 4800, 835, 25, kGen5},
    {"GH200 480GB", 4000, 989, 25, kGen5},
    {"GH200 144G HBM3e", 4900, 989, 25, kGen5},
    {"B200", 8000, 2250, 50, kGen5},
};

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool holdsWords(std::string_view text, std::string_view words) {
  auto outside = [&](size_t at) { return at >= text.size() || !std::isalnum(static_cast<unsigned char>(text[at])); };
  for (size_t at = 0; at + words.size() <= text.size(); ++at)
    if ((at == 0 || outside(at - 1)) && outside(at + words.size()) &&
        std::equal(words.begin(), words.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                   [](char a, char b) { return lower(a) == lower(b); }))
      return true;
  return false;
}

} // namespace

const GpuModel *findGpuModel(std::string_view name) {
  const GpuModel *best = nullptr;
  for (const GpuModel &model : kModels)
    if (holdsWords(name, model.name) && (!best || std::strlen(model.name) > std::strlen(best->name)))
      best = &model;
  return best;
}

} // namespace llmc
