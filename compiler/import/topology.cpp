// Reads topo.json: hosts and devices here, links in topology_links.cpp. Format: docs/topology.md.
#include "compiler/import/topology.h"

#include "compiler/import/files.h"
#include "compiler/import/topology_reader.h"
#include "compiler/import/units.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <algorithm>
#include <set>

namespace llmc {
namespace {

constexpr uint64_t kMaxTopologyBytes = 4u << 20;

const std::vector<std::string> kRootKeys = {
    "$schema",         "name",  "description", "hosts",        "devices",
    "device_defaults", "links", "link_groups", "default_link", "default_network_link"};
const std::vector<std::string> kDeviceKeys = {
    "id",        "kind",   "name",     "uuid",       "pci_id",
    "host",      "memory", "reserved", "capability", "memory_bandwidth",
    "peak_flops"};

// A key of the device, else of device_defaults.
std::optional<Json> pick(const Json &device, const std::optional<Json> &defaults, const char *key) {
  auto value = device.get(key);
  return value || !defaults ? value : defaults->get(key);
}

void readHosts(const Json &root, Topology &topology) {
  auto hosts = root.get("hosts");
  if (!hosts) {
    topology.hosts = {"localhost"};
    return;
  }
  hosts->expectArray();
  if (hosts->size() == 0)
    hosts->fail("the list is empty; name at least one host, or leave \"hosts\" out");
  if (hosts->size() > size_t{kMaxDevices})
    hosts->fail(std::to_string(hosts->size()) + " hosts; at most " + std::to_string(kMaxDevices) +
                " are read");
  std::set<std::string> seen;
  for (size_t i = 0; i < hosts->size(); ++i) {
    const std::string &name = hosts->at(i).asString();
    if (name.empty() || !seen.insert(name).second)
      hosts->at(i).fail(name.empty() ? "a host needs a name" : "the host " + quote(name) + " stands twice");
    topology.hosts.push_back(name);
  }
}

int64_t readHost(const Json &value, const Topology &topology) {
  if (value.kind() == JsonNode::Kind::Int) {
    if (value.asInt() < 0 || value.asInt() >= static_cast<int64_t>(topology.hosts.size()))
      value.fail("host number " + value.text() + " of " + std::to_string(topology.hosts.size()) +
                 " hosts; numbers start at 0");
    return value.asInt();
  }
  auto at = std::find(topology.hosts.begin(), topology.hosts.end(), value.asString());
  if (at != topology.hosts.end())
    return at - topology.hosts.begin();
  std::string nearest = nearestWord(value.asString(), topology.hosts);
  value.fail("no host " + value.text() +
             (nearest.empty() ? "; known are " + listText(topology.hosts)
                              : "; did you mean " + quote(nearest) + "?"));
}

Device readDevice(const Json &json, const std::optional<Json> &defaults, const Topology &topology) {
  json.allowOnly(kDeviceKeys);
  Device device;
  auto id = json.get("id");
  if (!id)
    json.fail("a device needs an \"id\", for example \"gpu0\"");
  device.id = id->asString();
  if (device.id.empty() || device.id.size() > 128)
    id->fail("an id has 1 to 128 bytes, found " + std::to_string(device.id.size()));
  device.kind = "cuda";
  if (auto kind = pick(json, defaults, "kind")) {
    device.kind = kind->asString();
    if (device.kind != "cuda" && device.kind != "cpu")
      kind->fail("unknown kind " + quote(device.kind) + "; devices are \"cuda\" or \"cpu\"");
  }
  if (auto name = pick(json, defaults, "name"))
    device.name = name->asString();
  if (auto uuid = json.get("uuid"))
    device.uuid = uuid->asString();
  if (auto pci = json.get("pci_id"))
    device.pciId = pci->asString();
  if (auto host = pick(json, defaults, "host"))
    device.host = readHost(*host, topology);

  auto memory = pick(json, defaults, "memory");
  if (!memory)
    json.fail("the device needs its \"memory\", for example \"80GiB\"");
  device.memoryBytes = parseBytes(*memory);
  if (device.memoryBytes == 0)
    memory->fail("a device of no memory holds nothing; give its size, for example \"80GiB\"");
  if (device.memoryBytes < (device.kind == "cuda" ? 1u << 20 : 1u << 16))
    memory->fail("a device of " + std::to_string(device.memoryBytes) +
                 " bytes holds nothing; plain numbers are bytes: write the unit, for example \"80GiB\"");
  if (auto reserved = pick(json, defaults, "reserved")) {
    device.reservedBytes = parseBytes(*reserved);
    if (device.reservedBytes >= device.memoryBytes)
      reserved->fail("reserved " + std::to_string(device.reservedBytes) + " of " +
                     std::to_string(device.memoryBytes) + " bytes leaves nothing for the model");
  } else if (device.kind == "cuda") {
    device.reservedBytes = std::min<uint64_t>(512u << 20, device.memoryBytes / 8);
  }
  if (auto capability = pick(json, defaults, "capability"))
    device.capability = parseCapability(*capability);
  else if (device.kind == "cuda")
    json.fail("a cuda device needs its compute \"capability\", for example \"9.0\" (nvidia-smi "
              "--query-gpu=compute_cap)");
  if (device.kind == "cuda" && device.capability < 20)
    pick(json, defaults, "capability")->fail("a cuda device has a compute capability of at least 2.0");
  for (auto [key, to, read] : {std::tuple{"memory_bandwidth", &device.memoryBandwidth, &parseBandwidth},
                               {"peak_flops", &device.peakFlops, &parseFlops}}) {
    auto value = pick(json, defaults, key);
    if (!value)
      json.fail(std::string("the device needs its \"") + key + "\", for example " +
                (key[0] == 'm' ? "\"3350GB/s\"" : "\"989TFLOPS\""));
    *to = read(*value);
    detail::checkSpeed(*value, *to, 1e6, key[0] == 'm' ? "bytes a second" : "operations a second",
                       key[0] == 'm' ? "3350GB/s" : "989TFLOPS");
  }
  return device;
}

void unique(std::set<std::string> &seen, const std::string &value, const Json &device, const char *key) {
  if (!value.empty() && !seen.insert(value).second)
    device.get(key)->fail(std::string(key) + " " + quote(value) +
                          " stands twice; every device needs its own");
}

Topology readRoot(const Json &root, const std::string &text) {
  root.allowOnly(kRootKeys);
  Topology topology;
  topology.sourceHash = hashHex(text);
  if (auto name = root.get("name"))
    topology.name = name->asString();
  readHosts(root, topology);

  auto defaults = root.get("device_defaults");
  if (defaults) {
    std::vector<std::string> allowed = kDeviceKeys;
    std::erase_if(allowed,
                  [](const std::string &key) { return key == "id" || key == "uuid" || key == "pci_id"; });
    defaults->allowOnly(allowed);
  }
  auto devices = root.get("devices");
  if (!devices)
    root.fail("the list \"devices\" is missing");
  devices->expectArray();
  if (devices->size() < 1 || devices->size() > size_t{kMaxDevices})
    devices->fail(std::to_string(devices->size()) + " devices; between 1 and " + std::to_string(kMaxDevices) +
                  " are allowed");
  detail::DeviceNumbers numbers;
  std::set<std::string> ids, uuids, pciIds;
  for (size_t i = 0; i < devices->size(); ++i) {
    const Json json = devices->at(i);
    Device device = readDevice(json, defaults, topology);
    unique(ids, device.id, json, "id");
    unique(uuids, device.uuid, json, "uuid");
    // Two hosts may each have a GPU at the same PCI address.
    unique(pciIds, device.pciId.empty() ? "" : std::to_string(device.host) + " " + device.pciId, json,
           "pci_id");
    numbers.emplace(device.id, static_cast<int64_t>(i));
    topology.devices.push_back(std::move(device));
  }
  detail::readLinks(root, numbers, topology);
  return topology;
}

} // namespace

const Link *Topology::find(int64_t a, int64_t b) const {
  if (a > b)
    std::swap(a, b);
  // Readers write links sorted by (a, b) with a < b; a topology that was put together by hand may not be.
  auto at =
      std::lower_bound(links.begin(), links.end(), std::pair{a, b}, [](const Link &link, const auto &pair) {
        return std::pair{link.a, link.b} < pair;
      });
  if (at != links.end() && at->a == a && at->b == b)
    return &*at;
  for (const Link &link : links)
    if ((link.a == a && link.b == b) || (link.a == b && link.b == a))
      return &link;
  return nullptr;
}

Topology parseTopology(const std::string &text, const std::string &nameForErrors) {
  JsonLimits limits;
  limits.bytes = kMaxTopologyBytes;
  limits.depth = 16;
  JsonFile file(text, nameForErrors, limits);
  return readRoot(file.root(), text);
}

// The table that nvidia-smi topo -m prints, with or without the codes that underline its header.
static bool isNvidiaSmiTable(const std::string &text) {
  const size_t table = text.find("GPU0"), json = text.find_first_of("{[\"");
  return table != std::string::npos && (json == std::string::npos || table < json || (json > 0 && text[json - 1] == '\x1b'));
}

Topology readTopology(const std::string &path) {
  const std::string text = readTextFile(path, kMaxTopologyBytes);
  if (isNvidiaSmiTable(text))
    throw Error(path + " is the table of nvidia-smi topo -m, not a topology file: llmc topology --links " + path +
                " makes one of it (see llmc topology --help)");
  Topology topology = parseTopology(text, path);
  if (topology.name.empty())
    topology.name = baseName(path);
  return topology;
}

} // namespace llmc
