// The ranks of a stage exchange activations at every layer, stages only once a step. So each stage gets an island of
// well-joined, like devices, and slow links lie between stages.
#include "passes/dist/Placement.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

namespace {
using Groups = SmallVector<SmallVector<int64_t>>;

// Devices joined by links of at least some bandwidth.
struct Islands {
  SmallVector<int64_t> parent;
  explicit Islands(int64_t n) : parent(n) { std::iota(parent.begin(), parent.end(), 0); }
  int64_t find(int64_t i) {
    while (parent[i] != i)
      i = parent[i] = parent[parent[i]];
    return i;
  }
  void join(int64_t a, int64_t b) {
    int64_t x = find(a), y = find(b);
    parent[std::max(x, y)] = std::min(x, y);
  }
};

class Placer {
public:
  Placer(TopologyAttr topology, int64_t tp, int64_t pp) : topology(topology), tp(tp), pp(pp) {}
  Placement run();

private:
  TopologyAttr topology;
  int64_t tp, pp;

  DeviceAttr device(int64_t i) const { return topology.getDevices()[i]; }
  std::string name(int64_t i) const { return ("'" + device(i).getId() + "'").str(); }
  bool sameHost(LinkAttr link) const { return device(link.getA()).getHost() == device(link.getB()).getHost(); }
  SmallVector<SmallVector<int64_t>> components() const;
  std::pair<Groups, double> pickGroups(ArrayRef<int64_t> devices) const;
  std::string missingLink(const Groups &groups) const;
};

// How good a link is for a group that talks at every layer: bandwidth, and P2P ahead of none.
double quality(LinkAttr link) {
  return link.getBandwidth().getValueAsDouble() * (link.getP2p() ? 1.0 : 0.5);
}
} // namespace

llvm::SmallVector<int64_t> dist::usableDevices(TopologyAttr topology) {
  SmallVector<int64_t> gpus, all;
  for (auto [i, device] : llvm::enumerate(topology.getDevices())) {
    all.push_back(i);
    if (device.getKind() == "cuda")
      gpus.push_back(i);
  }
  return gpus.empty() ? all : gpus;
}

// Usable devices that links join, one way or another: ranks of one plan must come from one of these.
SmallVector<SmallVector<int64_t>> Placer::components() const {
  SmallVector<int64_t> usable = usableDevices(topology);
  llvm::DenseSet<int64_t> may(usable.begin(), usable.end());
  Islands islands(topology.getDevices().size());
  for (LinkAttr link : topology.getLinks())
    if (may.contains(link.getA()) && may.contains(link.getB()))
      islands.join(link.getA(), link.getB());
  std::map<int64_t, SmallVector<int64_t>> members;
  for (int64_t i : usable)
    members[islands.find(i)].push_back(i);
  SmallVector<SmallVector<int64_t>> result;
  for (auto &[root, devices] : members)
    result.push_back(devices);
  return result;
}

// Picks `pp` groups of `tp` of these devices, best-joined first. Links are admitted from the best quality down; whenever
// an island has enough free devices, it gives up groups of like memory. Groups come in order of their first device, with
// the quality of the worst link that was admitted.
std::pair<Groups, double> Placer::pickGroups(ArrayRef<int64_t> devices) const {
  int64_t n = topology.getDevices().size();
  llvm::DenseSet<int64_t> free(devices.begin(), devices.end());
  const llvm::DenseSet<int64_t> may = free;
  SmallVector<LinkAttr> links;
  std::set<double, std::greater<>> levels;
  for (LinkAttr link : topology.getLinks())
    if (may.contains(link.getA()) && may.contains(link.getB())) {
      links.push_back(link);
      if (sameHost(link))
        levels.insert(quality(link));
    }
  levels.insert(0.0); // at last any devices, across hosts too

  Groups groups;
  double reached = 0;
  for (double level : levels) {
    Islands islands(n);
    for (LinkAttr link : links)
      if (level == 0.0 || (sameHost(link) && quality(link) >= level))
        islands.join(link.getA(), link.getB());
    std::map<int64_t, SmallVector<int64_t>> members;
    for (int64_t i : devices)
      if (free.contains(i))
        members[islands.find(i)].push_back(i);
    for (auto &[root, island] : members) {
      llvm::stable_sort(island, [&](int64_t a, int64_t b) { return device(a).getMemory() > device(b).getMemory(); });
      for (size_t i = 0; i + tp <= island.size() && static_cast<int64_t>(groups.size()) < pp; i += tp) {
        SmallVector<int64_t> group(island.begin() + i, island.begin() + i + tp);
        llvm::sort(group);
        for (int64_t taken : group)
          free.erase(taken);
        groups.push_back(group);
      }
    }
    reached = level;
    if (static_cast<int64_t>(groups.size()) == pp)
      break;
  }
  llvm::sort(groups, [](const auto &a, const auto &b) { return a[0] < b[0]; });
  return {groups, reached};
}

// The first two ranks that have to talk and cannot: any two of a stage, and those of neighbouring stages at one place.
std::string Placer::missingLink(const Groups &groups) const {
  auto without = [&](int64_t rank, int64_t a, int64_t peer, int64_t b) -> std::string {
    if (topology.findLink(a, b))
      return "";
    return "ranks " + std::to_string(rank) + " and " + std::to_string(peer) + " exchange data, and the topology has no link between their devices " +
           name(a) + " and " + name(b) + ": add it to \"links\", or use a smaller --tp or --pp";
  };
  for (int64_t stage = 0; stage < pp; ++stage)
    for (int64_t i = 0; i < tp; ++i) {
      for (int64_t j = i + 1; j < tp; ++j)
        if (std::string why = without(stage * tp + i, groups[stage][i], stage * tp + j, groups[stage][j]); !why.empty())
          return why;
      if (stage + 1 < pp)
        if (std::string why = without(stage * tp + i, groups[stage][i], (stage + 1) * tp + i, groups[stage + 1][i]); !why.empty())
          return why;
    }
  return "";
}

Placement Placer::run() {
  Groups best;
  double bestLevel = -1;
  size_t largest = 0;
  SmallVector<int64_t> most;
  for (const SmallVector<int64_t> &component : components()) {
    if (component.size() > largest)
      largest = component.size(), most = component;
    if (static_cast<int64_t>(component.size()) < tp * pp)
      continue;
    auto [groups, level] = pickGroups(component);
    if (level > bestLevel)
      best = groups, bestLevel = level;
  }
  if (bestLevel < 0) {
    std::string shown;
    for (size_t i = 0; i < most.size() && i < 4; ++i)
      shown += (i ? ", " : "") + name(most[i]);
    return {{}, "tp " + std::to_string(tp) + " x pp " + std::to_string(pp) + " needs " + std::to_string(tp * pp) +
                    " devices that links join, but the most that are joined are " + std::to_string(largest) + " (" + shown +
                    (most.size() > 4 ? ", ..." : "") +
                    "): add the missing links to the topology (\"default_network_link\" for those between hosts), or use a smaller --tp or --pp"};
  }
  if (std::string why = missingLink(best); !why.empty())
    return {{}, why};
  Placement placement;
  for (const auto &group : best)
    llvm::append_range(placement.devices, group);
  return placement;
}

Placement dist::placeRanks(TopologyAttr topology, int64_t tp, int64_t pp) { return Placer(topology, tp, pp).run(); }
