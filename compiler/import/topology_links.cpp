// The links of a topology: explicit ones, groups (all pairs within a set, or between sets), and defaults for
// the rest. Every pair ends with one link or none, and a GPU pair of one host must end with one.
#include "compiler/import/topology_reader.h"

#include "compiler/import/units.h"
#include "compiler/import/words.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace llmc::detail {
namespace {

using Pair = std::pair<int64_t, int64_t>;

// Latencies where the file gives none: about what nccl-tests and ping-pong tests show for each kind.
double usualLatency(const std::string &kind) {
  if (kind == "HOST")
    return 1e-6;
  if (kind == "NET")
    return 15e-6;
  if (kind == "NODE" || kind == "SYS")
    return 8e-6;
  return kind.compare(0, 2, "NV") == 0 ? 2e-6 : 5e-6;
}

bool isNvlink(const std::string &kind) {
  return kind.size() >= 3 && kind.size() <= 4 && kind.compare(0, 2, "NV") == 0 && kind[2] != '0' &&
         std::all_of(kind.begin() + 2, kind.end(), [](unsigned char c) { return std::isdigit(c); });
}

// The part of a link that does not say between whom.
Link readLinkBody(const Json &json) {
  static const std::vector<std::string> kinds = {"NV1", "NV2", "NV4", "NV6",  "NV8", "NV12", "NV18",
                                                 "PIX", "PXB", "PHB", "NODE", "SYS", "NET",  "HOST"};
  Link link;
  auto kind = json.get("kind");
  if (!kind)
    json.fail("a link needs its \"kind\", as nvidia-smi topo -m prints it: NV#, PIX, PXB, PHB, NODE, SYS, or "
              "NET, HOST");
  link.kind = kind->asString();
  if (!isNvlink(link.kind) && std::find(kinds.begin() + 7, kinds.end(), link.kind) == kinds.end()) {
    std::string nearest = nearestWord(link.kind, kinds);
    kind->fail(
        "unknown kind " + quote(link.kind) +
        (nearest.empty() ? "" : "; did you mean " + quote(nearest) + "?") +
        " (NV1 to NV99, PIX, PXB, PHB, NODE, SYS within a host, NET between hosts, HOST through CPU memory)");
  }
  auto bandwidth = json.get("bandwidth");
  if (!bandwidth)
    json.fail("a link needs its \"bandwidth\" in one direction, for example \"450GB/s\"");
  link.bandwidth = parseBandwidth(*bandwidth);
  checkSpeed(*bandwidth, link.bandwidth, 1e5, "bytes a second", "450GB/s");
  link.latency = usualLatency(link.kind);
  if (auto latency = json.get("latency"))
    link.latency = parseSeconds(*latency);
  if (link.latency > 1)
    json.get("latency")->fail("a latency of more than a second: " + json.get("latency")->text() +
                              "; numbers are in seconds, or write \"5us\"");
  link.p2p = isNvlink(link.kind);
  if (auto p2p = json.get("p2p")) {
    link.p2p = p2p->asBool();
    if (link.p2p && (link.kind == "NET" || link.kind == "HOST"))
      p2p->fail("a " + link.kind + " link has no peer-to-peer copies between GPUs");
    if (!link.p2p && isNvlink(link.kind))
      p2p->fail("NVLink without peer-to-peer: give the kind of the PCIe path instead");
  }
  return link;
}

class LinkReader {
public:
  LinkReader(const Json &root, const DeviceNumbers &numbers, Topology &topology)
      : root_(root), numbers_(numbers), topology_(topology) {}

  void run() {
    readExplicit();
    readGroups();
    applyDefaults();
    for (auto &[pair, link] : links_)
      topology_.links.push_back(std::move(link));
  }

private:
  int64_t device(const Json &value) const {
    auto at = numbers_.find(value.asString());
    if (at != numbers_.end())
      return at->second;
    std::vector<std::string> ids;
    for (const auto &[id, number] : numbers_)
      ids.push_back(id);
    std::string nearest = nearestWord(value.asString(), ids);
    value.fail(
        "no device " + value.text() +
        (nearest.empty() ? "; known are " + listText(ids, 8) : "; did you mean " + quote(nearest) + "?"));
  }

  std::vector<int64_t> deviceList(const Json &list) const {
    list.expectArray();
    std::vector<int64_t> out;
    std::set<int64_t> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      out.push_back(device(list.at(i)));
      if (!seen.insert(out.back()).second)
        list.at(i).fail("device " + list.at(i).text() + " stands twice in the group");
    }
    return out;
  }

  std::string pairText(Pair pair) const {
    return quote(topology_.devices[static_cast<size_t>(pair.first)].id) + " and " +
           quote(topology_.devices[static_cast<size_t>(pair.second)].id);
  }

  // Does this kind fit these two devices?
  void checkFit(const Json &json, const Link &link) const {
    const Device &a = topology_.devices[static_cast<size_t>(link.a)],
                 &b = topology_.devices[static_cast<size_t>(link.b)];
    const bool between = a.host != b.host;
    if (between && link.kind != "NET")
      json.fail(pairText({link.a, link.b}) + " are on different hosts (" +
                quote(topology_.hosts[static_cast<size_t>(a.host)]) + ", " +
                quote(topology_.hosts[static_cast<size_t>(b.host)]) +
                "), so their link must be of kind NET, not " + link.kind);
    if (!between && link.kind == "NET")
      json.fail(pairText({link.a, link.b}) + " are on one host, so their link cannot be of kind NET");
    if ((a.kind == "cpu" || b.kind == "cpu") && (isNvlink(link.kind) || link.p2p))
      json.fail(pairText({link.a, link.b}) +
                ": a CPU device has neither NVLink nor peer-to-peer copies; use HOST");
    if (link.kind == "HOST" && a.kind != "cpu" && b.kind != "cpu")
      json.fail(pairText({link.a, link.b}) +
                " are GPUs; HOST is for CPU devices, GPUs without peer-to-peer are linked as "
                "PHB, NODE or SYS with \"p2p\": false");
  }

  void add(const Json &json, Link link, int64_t a, int64_t b) {
    if (a == b)
      json.fail("a device needs no link to itself");
    link.a = std::min(a, b);
    link.b = std::max(a, b);
    checkFit(json, link);
    Pair pair{link.a, link.b};
    auto [at, added] = links_.emplace(pair, std::move(link));
    if (!added)
      json.fail("the link between " + pairText(pair) + " stands twice; the first is at " + origin_[pair]);
    origin_[pair] = json.path();
  }

  void readExplicit() {
    auto list = root_.get("links");
    if (!list)
      return;
    list->expectArray();
    for (size_t i = 0; i < list->size(); ++i) {
      Json json = list->at(i);
      json.allowOnly({"a", "b", "kind", "bandwidth", "latency", "p2p"});
      auto a = json.get("a"), b = json.get("b");
      if (!a || !b)
        json.fail("a link needs the ids of its two devices as \"a\" and \"b\"");
      int64_t from = device(*a), to = device(*b);
      add(json, readLinkBody(json), from, to);
    }
  }

  // {"devices": [...]}: all pairs; {"between": [[...], [...]]}: all pairs of devices from different sets.
  // An explicit link of "links" goes before a group's.
  void readGroups() {
    auto list = root_.get("link_groups");
    if (!list)
      return;
    list->expectArray();
    const std::set<Pair> explicitPairs = pairs();
    for (size_t i = 0; i < list->size(); ++i) {
      Json json = list->at(i);
      json.allowOnly({"devices", "between", "kind", "bandwidth", "latency", "p2p"});
      auto devices = json.get("devices"), between = json.get("between");
      if (devices.has_value() == between.has_value())
        json.fail(
            "a group needs either \"devices\" (all pairs of a list) or \"between\" (pairs across lists)");
      Link body = readLinkBody(json);
      std::vector<std::vector<int64_t>> sets;
      if (devices) {
        for (int64_t number : deviceList(*devices))
          sets.push_back({number});
        if (sets.size() < 2)
          devices->fail("a group of " + std::to_string(sets.size()) + " device has no pairs");
      } else {
        between->expectArray();
        for (size_t s = 0; s < between->size(); ++s)
          sets.push_back(deviceList(between->at(s)));
        if (sets.size() < 2)
          between->fail("\"between\" needs two lists or more, found " + std::to_string(sets.size()));
      }
      for (size_t s = 0; s < sets.size(); ++s)
        for (size_t t = s + 1; t < sets.size(); ++t)
          for (int64_t a : sets[s])
            for (int64_t b : sets[t])
              if (!explicitPairs.count({std::min(a, b), std::max(a, b)}))
                add(json, body, a, b);
    }
  }

  std::set<Pair> pairs() const {
    std::set<Pair> out;
    for (const auto &[pair, link] : links_)
      out.insert(pair);
    return out;
  }

  std::optional<Link> readDefault(const char *key) const {
    auto json = root_.get(key);
    if (!json)
      return std::nullopt;
    json->allowOnly({"kind", "bandwidth", "latency", "p2p"});
    Link link = readLinkBody(*json);
    const bool network = std::string_view(key) == "default_network_link";
    if (network != (link.kind == "NET"))
      json->fail(network ? "links between hosts are of kind NET, not " + link.kind
                         : std::string("links within a host are not of kind NET; use default_network_link"));
    if (link.kind == "HOST")
      json->fail("HOST links between CPU devices need no default; default_link is for GPUs of one host");
    return link;
  }

  void applyDefaults() {
    const std::optional<Link> inside = readDefault("default_link"),
                              across = readDefault("default_network_link");
    const int64_t count = static_cast<int64_t>(topology_.devices.size());
    std::vector<Pair> unlinked;
    for (int64_t a = 0; a < count; ++a)
      for (int64_t b = a + 1; b < count; ++b) {
        if (links_.count({a, b}))
          continue;
        const Device &from = topology_.devices[static_cast<size_t>(a)],
                     &to = topology_.devices[static_cast<size_t>(b)];
        std::optional<Link> link;
        if (from.host != to.host) {
          link = across;
        } else if (from.kind == "cpu" && to.kind == "cpu") {
          link = Link{};
          link->kind = "HOST"; // memory is read and written once each, so half of its bandwidth
          link->bandwidth = std::min(from.memoryBandwidth, to.memoryBandwidth) / 2;
          link->latency = usualLatency("HOST");
        } else if (from.kind == "cuda" && to.kind == "cuda") {
          link = inside;
          if (!link)
            unlinked.push_back({a, b});
        }
        if (!link)
          continue;
        link->a = a;
        link->b = b;
        links_.emplace(Pair{a, b}, *link);
      }
    if (!unlinked.empty())
      root_.get("links").value_or(root_).fail(
          "no link between " + pairText(unlinked.front()) + ", which are on one host" +
          (unlinked.size() > 1 ? " (nor for " + std::to_string(unlinked.size() - 1) + " other pairs)" : "") +
          "; add one to \"links\" with the kind that nvidia-smi topo -m prints for them, or a "
          "\"default_link\" for all "
          "that are not listed");
  }

  const Json &root_;
  const DeviceNumbers &numbers_;
  Topology &topology_;
  std::map<Pair, Link> links_;
  std::map<Pair, std::string> origin_;
};

} // namespace

void checkSpeed(const Json &value, double speed, double least, const char *unit, const char *example) {
  if (speed <= 0)
    value.fail("must be above zero, found " + value.text());
  if (speed < least)
    value.fail("no device is as slow as " + value.text() + "; plain numbers are " + unit +
               ": write the unit, for example " + quote(example));
  if (speed > 1e20)
    value.fail("no device is as fast as " + value.text() + "; write it like " + quote(example));
}

void readLinks(const Json &root, const DeviceNumbers &numbers, Topology &topology) {
  LinkReader(root, numbers, topology).run();
}

} // namespace llmc::detail
