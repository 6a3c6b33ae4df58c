// dist-assign-mesh: the ranks of a stage exchange activations at every layer, stages only once a step. So
// each stage gets an island of well-joined, like devices, and slow links lie between stages.
#include "passes/analysis/Splits.h"
#include "passes/dist/ModelFacts.h"
#include "passes/dist/Passes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace llmc::dist {
#define GEN_PASS_DEF_DISTASSIGNMESH
#include "passes/dist/Passes.h.inc"
} // namespace llmc::dist

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

namespace {
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

// How good a link is for a group that talks at every layer: bandwidth, and P2P ahead of none.
double quality(LinkAttr link) {
  return link.getBandwidth().getValueAsDouble() * (link.getP2p() ? 1.0 : 0.5);
}
} // namespace

// Picks `stages` groups of `tp` devices, best-joined first. Links are admitted from the best quality down;
// whenever an island has enough free devices, it gives up groups of like memory. Groups come back in order of
// their first device.
static SmallVector<SmallVector<int64_t>> pickGroups(TopologyAttr topology, int64_t tp, int64_t stages) {
  int64_t n = topology.getDevices().size();
  auto memory = [&](int64_t i) { return topology.getDevices()[i].getMemory(); };
  std::set<double, std::greater<>> levels;
  for (LinkAttr link : topology.getLinks())
    if (topology.getDevices()[link.getA()].getHost() == topology.getDevices()[link.getB()].getHost())
      levels.insert(quality(link));
  levels.insert(0.0); // at last any devices, across hosts too

  SmallVector<bool> used(n, false);
  SmallVector<SmallVector<int64_t>> groups;
  for (double level : levels) {
    Islands islands(n);
    for (LinkAttr link : topology.getLinks()) {
      bool sameHost =
          topology.getDevices()[link.getA()].getHost() == topology.getDevices()[link.getB()].getHost();
      if (level == 0.0 || (sameHost && quality(link) >= level))
        islands.join(link.getA(), link.getB());
    }
    std::map<int64_t, SmallVector<int64_t>> members;
    for (int64_t i = 0; i < n; ++i)
      if (!used[i])
        members[islands.find(i)].push_back(i);
    for (auto &[root, devices] : members) {
      llvm::stable_sort(devices, [&](int64_t a, int64_t b) { return memory(a) > memory(b); });
      for (size_t i = 0; i + tp <= devices.size() && static_cast<int64_t>(groups.size()) < stages; i += tp) {
        SmallVector<int64_t> group(devices.begin() + i, devices.begin() + i + tp);
        llvm::sort(group);
        for (int64_t device : group)
          used[device] = true;
        groups.push_back(group);
      }
    }
    if (static_cast<int64_t>(groups.size()) == stages)
      break;
  }
  llvm::sort(groups, [](const auto &a, const auto &b) { return a[0] < b[0]; });
  return groups;
}

namespace {
struct AssignMeshPass : llmc::dist::impl::DistAssignMeshBase<AssignMeshPass> {
  using DistAssignMeshBase::DistAssignMeshBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto topology = module->getAttrOfType<TopologyAttr>(kTopologyAttr);
    FailureOr<ModelFacts> facts = ModelFacts::of(module);
    if (failed(facts))
      return signalPassFailure();
    if (!topology) {
      module.emitError() << "has no " << kTopologyAttr;
      return signalPassFailure();
    }
    SplitLimits limits{facts->qHeads, facts->ffn, facts->vocab, facts->layers,
                       static_cast<int64_t>(topology.getDevices().size())};
    std::string why = explainIllegalSplit(limits, tp, pp);
    if (!why.empty()) {
      module.emitError() << why;
      return signalPassFailure();
    }
    SmallVector<SmallVector<int64_t>> groups = pickGroups(topology, tp, pp);
    if (static_cast<int64_t>(groups.size()) < pp) {
      module.emitError()
          << "only " << groups.size() << " of " << pp.getValue() << " stages find " << tp.getValue()
          << " devices that are joined by links: add the missing links to the topology, or lower --tp";
      return signalPassFailure();
    }
    SmallVector<int64_t> devices;
    for (const auto &group : groups)
      llvm::append_range(devices, group);
    module->setAttr(kMeshAttr, MeshAttr::get(&getContext(), tp, pp, devices));
  }
};
} // namespace
