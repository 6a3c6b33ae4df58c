// dist-assign-mesh: says which split of the model is legal, and gives each rank its device.
#include "passes/analysis/Splits.h"
#include "passes/dist/ModelFacts.h"
#include "passes/dist/Passes.h"
#include "passes/dist/Placement.h"

namespace llmc::dist {
#define GEN_PASS_DEF_DISTASSIGNMESH
#include "passes/dist/Passes.h.inc"
} // namespace llmc::dist

using namespace mlir;
using namespace llmc;
using namespace llmc::dist;

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
    const int64_t all = topology.getDevices().size(), usable = usableDevices(topology).size();
    SplitLimits limits{facts->qHeads, facts->ffn, facts->vocab, facts->layers, usable};
    std::string why = explainIllegalSplit(limits, tp, pp);
    if (!why.empty()) {
      if (usable < all)
        why += " (CPU devices take no part beside GPUs)";
      module.emitError() << why;
      return signalPassFailure();
    }
    Placement placement = placeRanks(topology, tp, pp);
    if (!placement.why.empty()) {
      module.emitError() << placement.why;
      return signalPassFailure();
    }
    module->setAttr(kMeshAttr, MeshAttr::get(&getContext(), tp, pp, placement.devices));
  }
};
} // namespace
