// topo.json: the examples, every check with the line and path it must report, and this machine's own
// topology.
#include "compiler/import/topology.h"

#include "test/unit/import/support.h"

#include <set>
#include <sstream>

using namespace llmc;
using namespace llmc::test;

namespace {

using nlohmann::json;

json gpu(const std::string &id) {
  return {{"id", id},
          {"memory", "80GiB"},
          {"capability", "9.0"},
          {"memory_bandwidth", "3350GB/s"},
          {"peak_flops", "989TFLOPS"}};
}
json pair() {
  return {{"devices", {gpu("gpu0"), gpu("gpu1")}},
          {"links", {{{"a", "gpu0"}, {"b", "gpu1"}, {"kind", "NV18"}, {"bandwidth", "450GB/s"}}}}};
}
Topology read(const json &value) {
  return parseTopology(value.dump(2), "topo.json");
}
void expectBad(const json &value, const std::vector<std::string> &parts) {
  expectError([&] { read(value); }, parts);
}
json changed(json value, const std::string &pointer, const json &to) {
  value[json::json_pointer(pointer)] = to;
  return value;
}
json removed(json value, const std::string &pointer, const std::string &key) {
  value[json::json_pointer(pointer)].erase(key);
  return value;
}

TEST(Topology, ReadsDevicesAndLinks) {
  Topology t =
      read(changed(changed(pair(), "/devices/1/reserved", "1GiB"), "/devices/0/pci_id", "0000:1b:00.0"));
  ASSERT_EQ(t.devices.size(), 2u);
  EXPECT_EQ(t.hosts, (std::vector<std::string>{"localhost"}));
  EXPECT_EQ(t.devices[0].memoryBytes, uint64_t{80} << 30);
  EXPECT_EQ(t.devices[0].reservedBytes, uint64_t{512} << 20);
  EXPECT_EQ(t.devices[1].reservedBytes, uint64_t{1} << 30);
  EXPECT_EQ(t.devices[0].capability, 90);
  EXPECT_EQ(t.devices[0].memoryBandwidth, 3350e9);
  EXPECT_EQ(t.devices[0].peakFlops, 989e12);
  EXPECT_EQ(t.devices[0].pciId, "0000:1b:00.0");
  EXPECT_EQ(t.devices[0].kind, "cuda");
  ASSERT_TRUE(t.find(1, 0));
  EXPECT_EQ(t.find(1, 0)->kind, "NV18");
  EXPECT_EQ(t.find(0, 1)->bandwidth, 450e9);
  EXPECT_EQ(t.find(0, 1)->latency, 2e-6);
  EXPECT_TRUE(t.find(0, 1)->p2p);
  EXPECT_FALSE(t.find(0, 0));
  EXPECT_EQ(t.sourceHash.size(), 16u);
}

TEST(Topology, Quantities) {
  auto memory = [](const json &value) {
    return read(changed(pair(), "/devices/0/memory", value)).devices[0].memoryBytes;
  };
  EXPECT_EQ(memory(85899345920), 85899345920u);
  EXPECT_EQ(memory("80 GiB"), uint64_t{80} << 30);
  EXPECT_EQ(memory("81559MiB"), uint64_t{81559} << 20);
  EXPECT_EQ(memory("80GB"), 80000000000u);
  EXPECT_EQ(memory("1.5GiB"), uint64_t{3} << 29);
  EXPECT_EQ(memory("8e9"), 8000000000u);
  auto bandwidth = [](const json &value) {
    return read(changed(pair(), "/links/0/bandwidth", value)).links[0].bandwidth;
  };
  EXPECT_EQ(bandwidth("400Gbit/s"), 50e9);
  EXPECT_EQ(bandwidth("400Gb/s"), 50e9);
  EXPECT_EQ(bandwidth("25GB/s"), 25e9);
  EXPECT_EQ(bandwidth(12.5e9), 12.5e9);
  auto capability = [](const json &value) {
    return read(changed(pair(), "/devices/0/capability", value)).devices[0].capability;
  };
  EXPECT_EQ(capability("8.9"), 89);
  EXPECT_EQ(capability(8.9), 89);
  EXPECT_EQ(capability(89), 89);
  EXPECT_EQ(capability("10.0"), 100);
  EXPECT_EQ(capability(12.0), 120);
  EXPECT_EQ(read(changed(pair(), "/links/0/latency", "7us")).links[0].latency, 7e-6);
  EXPECT_EQ(read(changed(pair(), "/links/0/latency", 1e-5)).links[0].latency, 1e-5);
}

TEST(Topology, BadQuantities) {
  for (const json &value :
       {json("80 gigs"), json("GiB"), json("-80GiB"), json(-5), json("0x50"), json(""), json("inf"),
        json(true), json("1e400GiB"), json(0), json("0GiB"), json("80GiB/s"), json("99999999999TiB")}) {
    SCOPED_TRACE(value.dump());
    expectBad(changed(pair(), "/devices/1/memory", value), {"topo.json:", ": /devices/1/memory: "});
  }
  expectBad(changed(pair(), "/links/0/bandwidth", 0), {"/links/0/bandwidth", "above zero"});
  // A unit that was forgotten would steer the split without a word.
  expectBad(changed(pair(), "/devices/1/memory", 80),
            {"a device of 80 bytes holds nothing", "write the unit, for example \"80GiB\""});
  expectBad(changed(pair(), "/devices/1/memory", "81559"), {"a device of 81559 bytes holds nothing"});
  expectBad(changed(pair(), "/devices/0/memory_bandwidth", 3350),
            {"/devices/0/memory_bandwidth", "as slow as 3350", "\"3350GB/s\""});
  expectBad(changed(pair(), "/devices/0/peak_flops", 989),
            {"/devices/0/peak_flops", "as slow as 989", "\"989TFLOPS\""});
  expectBad(changed(pair(), "/links/0/bandwidth", 450), {"/links/0/bandwidth", "as slow as 450", "\"450GB/s\""});
  expectBad(changed(pair(), "/links/0/bandwidth", "1e200GB/s"), {"/links/0/bandwidth", "as fast as"});
  expectBad(changed(pair(), "/links/0/bandwidth", "450GB"),
            {"/links/0/bandwidth", "unknown unit \"GB\"", "\"900GB/s\""});
  expectBad(changed(pair(), "/links/0/latency", 5), {"/links/0/latency", "more than a second"});
  expectBad(changed(pair(), "/links/0/latency", -1), {"/links/0/latency", "negative"});
  expectBad(changed(pair(), "/devices/0/peak_flops", 0), {"/devices/0/peak_flops", "above zero"});
  expectBad(changed(pair(), "/devices/0/reserved", "80GiB"), {"/devices/0/reserved", "leaves nothing"});
  expectBad(changed(pair(), "/devices/0/capability", "sm90"), {"/devices/0/capability", "\"9.0\""});
  expectBad(changed(pair(), "/devices/0/capability", 0), {"/devices/0/capability", "at least 2.0"});
}

TEST(Topology, LineAndPath) {
  std::string text = "{\n  \"devices\": [\n    {\n      \"id\": \"cpu0\",\n      \"kind\": \"cpu\",\n      "
                     "\"memory\": \"x\"\n    }\n  ]\n}\n";
  expectError([&] { parseTopology(text, "topo.json"); },
              {"topo.json:6: /devices/0/memory: cannot read \"x\" as a quantity"});
  expectError([&] { parseTopology("{\n\n \"devices\": [}", "topo.json"); }, {"topo.json:3: not valid JSON"});
}

TEST(Topology, UnknownKeysOfferTheNearest) {
  expectBad(changed(pair(), "/device", 1), {"/device: unknown key \"device\"; did you mean \"devices\"?"});
  expectBad(changed(pair(), "/devices/0/memroy", 1), {"/devices/0/memroy", "did you mean \"memory\"?"});
  expectBad(changed(pair(), "/links/0/bandwith", 1), {"/links/0/bandwith", "did you mean \"bandwidth\"?"});
  expectBad(changed(pair(), "/device_defaults", json{{"id", "x"}}), {"/device_defaults/id", "unknown key"});
}

TEST(Topology, MissingKeys) {
  expectBad(json::object(), {"the list \"devices\" is missing"});
  expectBad({{"devices", json::array()}}, {"/devices", "0 devices"});
  for (const char *key : {"id", "memory", "capability", "memory_bandwidth", "peak_flops"})
    expectBad(removed(pair(), "/devices/1", key), {"/devices/1: ", key});
  for (const char *key : {"a", "b", "kind", "bandwidth"})
    expectBad(removed(pair(), "/links/0", key), {"/links/0: ", key});
}

TEST(Topology, UniqueDevices) {
  expectBad(changed(pair(), "/devices/1/id", "gpu0"), {"/devices/1/id", "\"gpu0\" stands twice"});
  json uuids = changed(changed(pair(), "/devices/0/uuid", "GPU-1"), "/devices/1/uuid", "GPU-1");
  expectBad(uuids, {"/devices/1/uuid", "stands twice"});
  json pci =
      changed(changed(pair(), "/devices/0/pci_id", "0000:01:00.0"), "/devices/1/pci_id", "0000:01:00.0");
  expectBad(pci, {"/devices/1/pci_id", "stands twice"});
  // The same address on two hosts is fine.
  pci["hosts"] = {"x", "y"};
  pci["devices"][1]["host"] = "y";
  pci["links"] = json::array();
  EXPECT_NO_THROW(read(pci));
}

TEST(Topology, Hosts) {
  json two = changed(changed(pair(), "/hosts", json{"node0", "node1"}), "/devices/1/host", "node1");
  two["links"][0]["kind"] = "NET";
  EXPECT_EQ(read(two).devices[1].host, 1);
  EXPECT_EQ(read(changed(two, "/devices/1/host", 1)).devices[1].host, 1);
  expectBad(changed(two, "/devices/1/host", "nodel"),
            {"/devices/1/host", "no host \"nodel\"", "did you mean \"node"});
  expectBad(changed(two, "/devices/1/host", 2), {"/devices/1/host", "host number 2 of 2"});
  expectBad(changed(two, "/hosts", json{"a", "a"}), {"/hosts/1", "stands twice"});
  expectBad(changed(two, "/hosts", json::array()), {"/hosts", "empty"});
  expectBad(changed(two, "/links/0/kind", "SYS"),
            {"/links/0", "different hosts", "must be of kind NET, not SYS"});
  two["links"] = json::array();
  EXPECT_FALSE(read(two).find(0, 1)); // hosts need not be linked
  two["default_network_link"] = {{"kind", "NET"}, {"bandwidth", "100Gbit/s"}};
  ASSERT_TRUE(read(two).find(0, 1));
  EXPECT_EQ(read(two).find(0, 1)->latency, 15e-6);
  expectBad(changed(two, "/default_network_link/kind", "SYS"),
            {"/default_network_link", "of kind NET, not SYS"});
}

TEST(Topology, LinkReferencesAndKinds) {
  expectBad(changed(pair(), "/links/0/b", "gpu7"),
            {"/links/0/b", "no device \"gpu7\"", "did you mean \"gpu"});
  expectBad(changed(pair(), "/links/0/b", "gpu0"), {"/links/0", "no link to itself"});
  expectBad(changed(pair(), "/links/0/kind", "PIXX"),
            {"/links/0/kind", "unknown kind \"PIXX\"; did you mean \"PIX\"?"});
  for (const char *bad : {"NV", "NV0", "NV100", "nv18", "NVx", "", "X"})
    expectBad(changed(pair(), "/links/0/kind", bad), {"/links/0/kind", "unknown kind"});
  for (const char *good : {"NV1", "NV4", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS"})
    EXPECT_NO_THROW(read(changed(pair(), "/links/0/kind", good))) << good;
  expectBad(changed(pair(), "/links/0/kind", "NET"), {"on one host", "cannot be of kind NET"});
  expectBad(changed(pair(), "/links/0/kind", "HOST"), {"are GPUs; HOST is for CPU devices"});
  expectBad(changed(pair(), "/links/0/p2p", false), {"/links/0/p2p", "NVLink without peer-to-peer"});
  json pcie = changed(pair(), "/links/0/kind", "PHB");
  EXPECT_FALSE(read(pcie).links[0].p2p);
  EXPECT_TRUE(read(changed(pcie, "/links/0/p2p", true)).links[0].p2p);
  json twice = pair();
  twice["links"].push_back(twice["links"][0]);
  std::swap(twice["links"][1]["a"], twice["links"][1]["b"]);
  expectBad(twice, {"/links/1", "\"gpu0\" and \"gpu1\" stands twice", "/links/0"});
}

TEST(Topology, MissingRowsNameThePairAndTheRemedy) {
  json three = pair();
  three["devices"].push_back(gpu("gpu2"));
  expectBad(three, {"topo.json:", "/links: no link between \"gpu0\" and \"gpu2\"", "nor for 1 other pairs",
                    "default_link"});
  json none = pair();
  none.erase("links");
  expectBad(none, {"no link between \"gpu0\" and \"gpu1\""});
  three["default_link"] = {{"kind", "SYS"}, {"bandwidth", "10GB/s"}};
  Topology t = read(three);
  EXPECT_EQ(t.find(0, 1)->kind, "NV18");
  EXPECT_EQ(t.find(2, 0)->kind, "SYS");
  EXPECT_EQ(t.links.size(), 3u);
}

TEST(Topology, Groups) {
  json four = {{"devices", {gpu("gpu0"), gpu("gpu1"), gpu("gpu2"), gpu("gpu3")}}};
  json nv = {{"devices", {"gpu0", "gpu1", "gpu2"}}, {"kind", "NV4"}, {"bandwidth", "50GB/s"}};
  json across = {{"between", {{"gpu0", "gpu1", "gpu2"}, {"gpu3"}}}, {"kind", "SYS"}, {"bandwidth", "10GB/s"}};
  four["link_groups"] = {nv, across};
  Topology t = read(four);
  EXPECT_EQ(t.links.size(), 6u);
  EXPECT_EQ(t.find(0, 2)->kind, "NV4");
  EXPECT_EQ(t.find(3, 2)->kind, "SYS");
  for (size_t i = 1; i < t.links.size(); ++i) // sorted
    EXPECT_LT(std::pair(t.links[i - 1].a, t.links[i - 1].b), std::pair(t.links[i].a, t.links[i].b));
  four["links"] = {{{"a", "gpu0"}, {"b", "gpu3"}, {"kind", "PIX"}, {"bandwidth", "20GB/s"}}};
  EXPECT_EQ(read(four).find(0, 3)->kind, "PIX"); // an explicit link goes before a group's
  four["link_groups"].push_back(nv);
  expectBad(four, {"/link_groups/2", "stands twice", "/link_groups/0"});
  four["link_groups"] = {{{"devices", {"gpu0"}}, {"kind", "NV4"}, {"bandwidth", 1e9}}};
  expectBad(four, {"/link_groups/0/devices", "no pairs"});
  four["link_groups"] = {{{"devices", {"gpu0", "gpu0"}}, {"kind", "NV4"}, {"bandwidth", 1e9}}};
  expectBad(four, {"/link_groups/0/devices/1", "stands twice"});
  four["link_groups"] = {{{"kind", "NV4"}, {"bandwidth", 1e9}}};
  expectBad(four, {"/link_groups/0", "either \"devices\"", "\"between\""});
}

TEST(Topology, CpuDevicesShareMemory) {
  json cpu = {
      {"kind", "cpu"}, {"memory", "1GiB"}, {"memory_bandwidth", "10GB/s"}, {"peak_flops", "100GFLOPS"}};
  json t = {{"device_defaults", cpu}, {"devices", {{{"id", "a"}}, {{"id", "b"}}}}};
  Topology read2 = read(t);
  EXPECT_EQ(read2.devices[0].capability, 0);
  EXPECT_EQ(read2.devices[0].reservedBytes, 0u);
  EXPECT_EQ(read2.find(0, 1)->kind, "HOST");
  EXPECT_EQ(read2.find(0, 1)->bandwidth, 5e9);
  EXPECT_FALSE(read2.find(0, 1)->p2p);
  t["links"] = {{{"a", "a"}, {"b", "b"}, {"kind", "NV4"}, {"bandwidth", 1e9}}};
  expectBad(t, {"/links/0", "a CPU device has neither NVLink"});
}

TEST(Topology, Examples) {
  const std::string folder = std::string(LLMC_SOURCE_DIR) + "/examples/topo";
  size_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json")
      continue;
    SCOPED_TRACE(entry.path().string());
    Topology t = readTopology(entry.path().string());
    EXPECT_FALSE(t.name.empty());
    const size_t n = t.devices.size();
    EXPECT_EQ(t.links.size(), n * (n - 1) / 2);
    ++count;
  }
  EXPECT_GE(count, 8u);
  Topology nvlink = readTopology(folder + "/8x-nvlink-80gb.json");
  EXPECT_EQ(nvlink.devices.size(), 8u);
  EXPECT_EQ(nvlink.find(7, 0)->kind, "NV18");
  Topology pcie = readTopology(folder + "/6x-pcie-24gb.json");
  EXPECT_EQ(pcie.devices.size(), 6u);
  for (const Link &link : pcie.links)
    EXPECT_FALSE(link.p2p);
  Topology islands = readTopology(folder + "/2-islands.json");
  EXPECT_TRUE(islands.find(0, 1)->p2p && islands.find(2, 3)->p2p);
  EXPECT_FALSE(islands.find(1, 2)->p2p || islands.find(0, 3)->p2p);
  Topology mixed = readTopology(folder + "/mixed-24-48gb.json");
  EXPECT_LT(mixed.devices[0].memoryBytes * 3 / 2, mixed.devices[3].memoryBytes);
  Topology hosts = readTopology(folder + "/2-hosts.json");
  EXPECT_EQ(hosts.hosts.size(), 2u);
  EXPECT_EQ(hosts.find(0, 7)->kind, "NET");
  EXPECT_EQ(hosts.find(4, 7)->kind, "NV12");
  Topology cpu = readTopology(folder + "/cpu-12.json");
  EXPECT_EQ(cpu.devices.size(), 12u);
  uint64_t total = 0;
  for (const Device &device : cpu.devices)
    total += device.memoryBytes;
  EXPECT_LE(total, uint64_t{13} << 30); // a laptop of 16 GB
}

// Every property that the schema lists is a key that the reader knows, and the reader knows no other.
TEST(Topology, SchemaAndReaderKnowTheSameKeys) {
  json schema = json::parse(std::ifstream(std::string(LLMC_SOURCE_DIR) + "/docs/topology.schema.json"));
  auto keysKnown = [](const json &document, const std::string &where) {
    // The reader lists what it knows when a key is far from all of them.
    try {
      read(changed(document, where + "/zzzzzzzzzzzzzzzzzzzzzzzz", 1));
    } catch (const Error &error) {
      std::string text = error.what();
      size_t at = text.find("known here: ");
      EXPECT_NE(at, std::string::npos) << text;
      std::set<std::string> out;
      std::string word;
      std::istringstream words(text.substr(at + 12));
      while (words >> word)
        if (word != "and")
          out.insert(word.back() == ',' ? word.substr(0, word.size() - 1) : word);
      return out;
    }
    return std::set<std::string>();
  };
  auto properties = [&](const std::string &pointer) {
    std::set<std::string> out;
    for (const auto &[key, value] : schema[json::json_pointer(pointer + "/properties")].items())
      out.insert(key);
    return out;
  };
  json document = pair();
  document["device_defaults"] = json::object();
  json link = {{"kind", "SYS"}, {"bandwidth", 1e9}},
       group = {{"devices", {"gpu0", "gpu1"}}, {"kind", "SYS"}, {"bandwidth", 1e9}};
  document["link_groups"] = {group};
  document["default_link"] = link;
  document["default_network_link"] = {{"kind", "NET"}, {"bandwidth", 1e9}};
  EXPECT_EQ(keysKnown(document, ""), properties(""));
  EXPECT_EQ(keysKnown(document, "/devices/0"), properties("/properties/devices/items"));
  EXPECT_EQ(keysKnown(document, "/device_defaults"), properties("/properties/device_defaults"));
  EXPECT_EQ(keysKnown(document, "/links/0"), properties("/properties/links/items"));
  EXPECT_EQ(keysKnown(document, "/link_groups/0"), properties("/properties/link_groups/items"));
  EXPECT_EQ(keysKnown(document, "/default_link"), properties("/properties/default_link"));
  EXPECT_EQ(keysKnown(document, "/default_network_link"), properties("/properties/default_network_link"));
}

TEST(Topology, ThisMachine) {
  Topology one = hostCpuTopology(1), six = hostCpuTopology(6);
  ASSERT_EQ(six.devices.size(), 6u);
  EXPECT_EQ(six.links.size(), 15u);
  EXPECT_EQ(six.devices[0].memoryBytes, one.devices[0].memoryBytes / 6);
  EXPECT_GT(one.devices[0].memoryBytes, uint64_t{64} << 20);
  EXPECT_LT(one.devices[0].reservedBytes, one.devices[0].memoryBytes);
  EXPECT_EQ(six.find(5, 2)->kind, "HOST");
  EXPECT_EQ(hostCpuTopology(6).sourceHash, six.sourceHash);
  expectError([] { hostCpuTopology(0); }, {"0 CPU devices"});
  expectError([] { hostCpuTopology(513); }, {"513 CPU devices", "512"});
}

// What people have at hand, given in place of a topology file.
TEST(Topology, OtherTextsAreNamed) {
  const std::string table = "GPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-31\n";
  const Folder folder;
  for (const std::string &text : {table, "\t\x1b[4m" + table, "\r\n" + table})
    expectError([&] { readTopology(folder.write("topo.txt", text)); },
                {"topo.txt is the table of nvidia-smi topo -m", "llmc topology --links"});
  expectError(
      [] { readTopology(std::string(LLMC_SOURCE_DIR) + "/test/golden/topo/2x-h200-nvidia-smi-topo-m.txt"); },
      {"is the table of nvidia-smi topo -m"});
  // GPU0 as an id of a real file is no table.
  json named = changed(changed(pair(), "/devices/0/id", "GPU0"), "/links/0/a", "GPU0");
  EXPECT_EQ(readTopology(folder.write("topo.json", named)).devices[0].id, "GPU0");
  expectError([] { parseTopology(std::string("\xff\xfe{\0}\0", 6), "topo.json"); },
              {"topo.json is text in UTF-16; save it as UTF-8"});
  expectError([] { parseTopology("\x80", "topo.json"); }, {"not valid JSON", "<80>"});
}

TEST(Topology, LimitsAndFiles) {
  expectError([] { readTopology("/nonexistent/topo.json"); }, {"cannot open /nonexistent/topo.json"});
  json many;
  for (int i = 0; i < 513; ++i)
    many["devices"].push_back(gpu(std::to_string(i) + "g"));
  expectBad(many, {"/devices", "513 devices"});
  expectError([] { parseTopology(std::string(50000, '['), "topo.json"); }, {"deeper than 16"});
}

} // namespace
