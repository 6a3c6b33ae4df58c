// nvidia-smi's tables as machines print them (case 23), and what becomes of them as a topology file.
#include "compiler/import/gpu_models.h"
#include "compiler/import/nvidia_smi.h"
#include "compiler/import/topology.h"

#include "test/unit/import/support.h"

using namespace llmc;
using namespace llmc::test;

namespace {

// n GPUs of one name, with all that the command of the documentation asks for.
std::string csv(size_t n, const std::string &name, const std::string &memory, const std::string &capability) {
  std::string text = "index, name, uuid, pci.bus_id, memory.total [MiB], compute_cap\n";
  for (size_t i = 0; i < n; ++i)
    text += std::to_string(i) + ", " + name + ", GPU-" + std::to_string(i) + ", 00000000:" + std::to_string(10 + i) + ":00.0, " + memory +
            ", " + capability + "\n";
  return text;
}

// Four GPUs on PCIe with two NICs: underlined header, legends, a row that ends after its GPUs.
const char *const kPcie = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
                          "GPU0\t X \tPIX\tNODE\tSYS\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n"
                          "GPU1\tPIX\t X \tPHB\tSYS\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n"
                          "GPU2\tNODE\tPHB\t X \tPXB\tNODE\tSYS\tN/A\tN/A\n"
                          "GPU3\tSYS\tSYS\tPXB\t X\n"
                          "NIC0\tPXB\tPXB\tNODE\tSYS\t X \tSYS\t\t\t\t\n"
                          "NIC1\tSYS\tSYS\tSYS\tPHB\tSYS\t X \t\t\t\t\n"
                          "\nLegend:\n\n  X    = Self\n"
                          "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
                          "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

Topology made(const std::string &gpus, const std::string &links) {
  std::vector<SmiGpu> parsed = parseSmiGpus(gpus, "gpus.csv");
  SmiLinks kinds = parsed.size() == 1 ? SmiLinks{{"X"}} : parseSmiLinks(links, "links.txt", parsed.size());
  return parseTopology(smiTopology(parsed, kinds, "", ""), "topo.json");
}

TEST(NvidiaSmi, TheTwoH200OfTheExample) {
  std::ifstream in(std::string(LLMC_SOURCE_DIR) + "/test/golden/topo/2x-h200-nvidia-smi-topo-m.txt");
  const std::string links{std::istreambuf_iterator<char>(in), {}};
  Topology t = made(csv(2, "NVIDIA H200", "143771 MiB", "9.0"), links);
  Topology example = readTopology(std::string(LLMC_SOURCE_DIR) + "/examples/topo/2x-h200.json");
  ASSERT_EQ(t.devices.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(t.devices[i].name, example.devices[i].name);
    EXPECT_EQ(t.devices[i].memoryBytes, example.devices[i].memoryBytes);
    EXPECT_EQ(t.devices[i].reservedBytes, example.devices[i].reservedBytes);
    EXPECT_EQ(t.devices[i].capability, example.devices[i].capability);
    EXPECT_EQ(t.devices[i].memoryBandwidth, example.devices[i].memoryBandwidth);
    EXPECT_EQ(t.devices[i].peakFlops, example.devices[i].peakFlops);
    EXPECT_EQ(t.devices[i].uuid, "GPU-" + std::to_string(i));
  }
  EXPECT_EQ(t.devices[1].pciId, "00000000:11:00.0");
  EXPECT_EQ(t.links.at(0).kind, "NV18");
  EXPECT_EQ(t.links[0].bandwidth, example.links[0].bandwidth);
  EXPECT_TRUE(t.links[0].p2p);
}

TEST(NvidiaSmi, PcieWithNicsInEverySpelling) {
  const std::string gpus = csv(4, "NVIDIA A100 80GB PCIe", "81920 MiB", "8.0");
  for (const std::string &links :
       {std::string(kPcie), replaced(kPcie, "\n", "\r\n"), replaced(kPcie, "\t", "    "), "$ nvidia-smi topo -m\n" + std::string(kPcie),
        replaced(replaced(kPcie, "\x1b[4m", ""), "\x1b[0m", ""), std::string(kPcie).substr(0, std::string(kPcie).find("\nLegend"))}) {
    SCOPED_TRACE(links);
    Topology t = made(replaced(gpus, "\n", links.find('\r') == std::string::npos ? "\n" : "\r\n"), links);
    const char *expected[4][4] = {{"", "PIX", "NODE", "SYS"}, {"", "", "PHB", "SYS"}, {"", "", "", "PXB"}};
    for (int64_t a = 0; a < 4; ++a)
      for (int64_t b = a + 1; b < 4; ++b) {
        EXPECT_EQ(t.find(a, b)->kind, expected[a][b]);
        EXPECT_FALSE(t.find(a, b)->p2p); // PCIe says so only once it was verified
      }
    EXPECT_EQ(t.find(0, 1)->bandwidth, 2 * t.find(0, 3)->bandwidth);
  }
}

TEST(NvidiaSmi, ColumnsOfNicsBetweenThoseOfGpus) {
  Topology t = made(csv(2, "NVIDIA H100 NVL", "95830", "9.0"), // with --format=csv,nounits
                    "        GPU0    mlx5_0  GPU1    mlx5_1  CPU Affinity    NUMA Affinity\n"
                    "GPU0     X      PIX     NV12    SYS     0-31            N/A\n"
                    "mlx5_0  PIX      X      SYS     SYS\n"
                    "GPU1    NV12    SYS      X      PIX     32-63           N/A\n");
  EXPECT_EQ(t.find(0, 1)->kind, "NV12");
  EXPECT_EQ(t.find(0, 1)->bandwidth, 300e9);
}

TEST(NvidiaSmi, OneGpuAndMixedOnes) {
  Topology one = made(csv(1, "NVIDIA GH200 480GB", "97871 MiB", "9.0"), "");
  EXPECT_EQ(one.devices.size(), 1u);
  EXPECT_TRUE(one.links.empty());
  Topology mixed = made("name, compute_cap, memory.total [MiB], power.draw [W]\nNVIDIA GeForce RTX 3090, 8.6, 24576 MiB, 30 W\n"
                        "NVIDIA RTX A6000, 8.6, 49140 MiB, 20 W\n",
                        "\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n");
  EXPECT_EQ(mixed.devices[0].memoryBandwidth, 936e9);
  EXPECT_EQ(mixed.devices[1].memoryBandwidth, 768e9);
  EXPECT_EQ(mixed.devices[1].memoryBytes, uint64_t{49140} << 20);
  EXPECT_EQ(mixed.find(0, 1)->bandwidth, 56e9);
}

TEST(NvidiaSmi, ModelsAreFoundByWholeWords) {
  const std::pair<const char *, const char *> names[] = {
      {"NVIDIA A10", "A10"},   {"NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"},     {"NVIDIA L4", "L4"},         {"NVIDIA L40", "L40"},
      {"NVIDIA L40S", "L40S"}, {"NVIDIA GeForce RTX 3090 Ti", "GeForce RTX 3090 Ti"}, {"NVIDIA H200 NVL", "H200 NVL"}, {"NVIDIA H200", "H200"},
      {"Tesla T4", "T4"},      {"NVIDIA GH200 480GB", "GH200 480GB"},           {"NVIDIA A10G", "A10G"},     {"NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada Generation"}};
  for (const auto &[name, model] : names) {
    ASSERT_TRUE(findGpuModel(name)) << name;
    EXPECT_STREQ(findGpuModel(name)->name, model);
  }
  for (const char *name : {"NVIDIA GB200", "NVIDIA A100X", "NVIDIA T400", ""})
    EXPECT_FALSE(findGpuModel(name)) << name;
}

TEST(NvidiaSmi, ListsThatAreWrong) {
  auto bad = [](const std::string &text, const std::vector<std::string> &parts) {
    expectError([&] { parseSmiGpus(text, "gpus.csv"); }, parts);
  };
  const std::string good = csv(2, "NVIDIA H200", "143771 MiB", "9.0");
  bad("", {"gpus.csv has no column \"name\"", "nvidia-smi --query-gpu="});
  bad(good.substr(good.find('\n') + 1), {"no column \"name\""});
  bad(good.substr(0, good.find('\n') + 1), {"lists 0 GPUs"});
  bad(replaced(good, "143771 MiB", "[N/A]"), {"GPU 0: memory.total is \"[N/A]\"", "such as 81559 MiB"});
  bad(replaced(good, "143771 MiB", "140 GiB"), {"\"140 GiB\""});
  bad(replaced(good, "9.0", "[Not Supported]"), {"GPU 0: compute_cap is \"[Not Supported]\""});
  bad(replaced(good, "NVIDIA H200", ""), {"it has no name"});
  bad(replaced(good, "NVIDIA H200", "NVIDIA H\xb8"), {"GPU 0 has \"NVIDIA H\\xb8\", which is no text"});
  bad(replaced(good, "\n1, ", "\n3, "), {"GPU 1 has index \"3\"", "without a gap"});
  bad(csv(65, "NVIDIA H200", "1 MiB", "9.0"), {"lists 65 GPUs"});
  // A model that is in no data sheet here.
  std::vector<SmiGpu> old = parseSmiGpus(csv(1, "NVIDIA GeForce GTX 1080 Ti", "11264 MiB", "6.1"), "gpus.csv");
  expectError([&] { smiTopology(old, {{"X"}}, "", ""); }, {"\"NVIDIA GeForce GTX 1080 Ti\" is not known", "--memory-bandwidth"});
  EXPECT_EQ(parseTopology(smiTopology(old, {{"X"}}, "484GB/s", "11TFLOPS"), "t").devices[0].memoryBandwidth, 484e9);
}

TEST(NvidiaSmi, TablesThatAreWrong) {
  auto bad = [](const std::string &text, size_t gpus, const std::vector<std::string> &parts) {
    expectError([&] { parseSmiLinks(text, "links.txt", gpus); }, parts);
  };
  const std::string good = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n";
  EXPECT_EQ(parseSmiLinks(good, "links.txt", 2), (SmiLinks{{"X", "NV4"}, {"NV4", "X"}}));
  bad("", 2, {"columns for 0 GPUs, the list of GPUs has 2", "nvidia-smi topo -m"});
  bad(good, 3, {"columns for 2 GPUs, the list of GPUs has 3"});
  bad(replaced(good, "GPU1\tNV4", "GPU1\tSYS"), 2, {"GPU0 and GPU1 are joined by NV4 in one row and by SYS in the other"});
  bad(good.substr(0, good.find("GPU1\tNV4")), 2, {"no row for GPU1"});
  bad(good + "GPU1\tNV4\t X \n", 2, {"the row of GPU1 stands twice"});
  bad(good + "GPU2\tNV4\t X \n", 2, {"the row of GPU2 has no column"});
  bad(replaced(good, "GPU0\t X \tNV4", "GPU0\t X "), 2, {"the row of GPU0 has \"0-31\" for GPU1"});
  bad(replaced(good, "GPU0\t X \tNV4\t0-31", "GPU0\t X"), 2, {"the row of GPU0 ends before the column of GPU1"});
  bad(replaced(good, " X ", "NV4"), 2, {"\"NV4\" for GPU0; expected X"});
  for (const char *kind : {"NV0", "NV100", "NV", "NVX", "OK", "N/A"})
    bad(replaced(good, "NV4", kind), 2, {std::string("has \"") + kind + "\" for GPU1", "expected NV#, PIX"});
  bad(replaced(good, "\tGPU1\tCPU", "\tGPU7\tCPU"), 2, {"no column for GPU1"});
}

} // namespace
