// Registers the dist dialect and checks its attributes. Ops' verifiers are in DistOps.cpp.
#include "dialects/dist/DistDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::dist;

#include "dialects/dist/DistDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
}

LogicalResult TopologyAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef, ArrayAttr hosts,
                                   ArrayRef<DeviceAttr> devices, ArrayRef<LinkAttr> links) {
  if (devices.empty())
    return emitError() << "a topology needs at least one device";
  for (DeviceAttr device : devices)
    if (device.getHost() < 0 || device.getHost() >= static_cast<int64_t>(hosts.size()))
      return emitError() << "device " << device.getId() << " is on host " << device.getHost() << " of "
                         << hosts.size();
  int64_t n = devices.size();
  for (LinkAttr link : links)
    if (link.getA() < 0 || link.getA() >= n || link.getB() < 0 || link.getB() >= n ||
        link.getA() == link.getB())
      return emitError() << "link " << link.getA() << "-" << link.getB() << " does not join two of " << n
                         << " devices";
  return success();
}

LinkAttr TopologyAttr::findLink(int64_t a, int64_t b) const {
  // Importers write links sorted by (a, b) with a < b; a topology that was put together by hand may not be.
  auto at = llvm::lower_bound(getLinks(), std::minmax(a, b), [](LinkAttr link, const auto &pair) {
    return std::pair(link.getA(), link.getB()) < std::pair(pair.first, pair.second);
  });
  if (at != getLinks().end() && at->getA() == std::min(a, b) && at->getB() == std::max(a, b))
    return *at;
  for (LinkAttr link : getLinks())
    if ((link.getA() == a && link.getB() == b) || (link.getA() == b && link.getB() == a))
      return link;
  return {};
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t tp, int64_t pp,
                               ArrayRef<int64_t> devices) {
  if (tp < 1 || pp < 1 || tp * pp != static_cast<int64_t>(devices.size()))
    return emitError() << "a mesh of tp " << tp << " x pp " << pp << " needs as many devices, but has "
                       << devices.size();
  for (int64_t device : devices)
    if (device < 0)
      return emitError() << "a mesh counts devices from 0, but names " << device;
  return success();
}

LogicalResult LimitsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t maxModelLen,
                                 int64_t maxNumSeqs, int64_t maxBatchedTokens, int64_t maxLogitsRows,
                                 int64_t pageSize, FloatAttr utilization, Type) {
  if (maxModelLen < 1 || maxNumSeqs < 1 || maxBatchedTokens < 1 || maxLogitsRows < 1 || pageSize < 1)
    return emitError() << "limits must all be at least 1";
  double share = utilization.getValueAsDouble();
  if (!(share > 0 && share <= 1))
    return emitError() << "memory_utilization " << share << " must lie in (0, 1]";
  return success();
}

LogicalResult TilesAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t dim,
                                ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  if (dim < 0 || offsets.empty() || offsets.size() != sizes.size())
    return emitError() << "tiles need a dimension and as many offsets as sizes, but have dim " << dim << ", "
                       << offsets.size() << " offsets and " << sizes.size() << " sizes";
  int64_t covered = 0;
  for (auto [i, offset, size] : llvm::enumerate(offsets, sizes)) {
    if (offset < 0 || size < 1)
      return emitError() << "tile " << i << " is [" << offset << ", +" << size << "), which holds nothing";
    if (i && offset < offsets[i - 1])
      return emitError() << "tile " << i << " starts at " << offset << ", before tile " << i - 1;
    if (offset > covered)
      return emitError() << "tiles leave [" << covered << ", " << offset << ") to no rank";
    covered = std::max(covered, offset + size);
  }
  return success();
}

int64_t TilesAttr::extent() const {
  int64_t end = 0;
  for (auto [offset, size] : llvm::zip(getOffsets(), getSizes()))
    end = std::max(end, offset + size);
  return end;
}

bool TilesAttr::disjoint() const {
  int64_t end = 0;
  for (auto [offset, size] : llvm::zip(getOffsets(), getSizes())) {
    if (offset != end)
      return false;
    end = offset + size;
  }
  return true;
}

// Tiles of a value cover the dimension that they tile; a vector has but one.
static LogicalResult checkTilesOf(Operation *op, StringRef name, Attribute sharding, Type valueType) {
  auto tiles = dyn_cast<TilesAttr>(sharding);
  if (!tiles)
    return success();
  auto type = dyn_cast<RankedTensorType>(valueType);
  if (!type || type.getRank() == 0)
    return op->emitError() << "'" << name << "' tiles a value of " << valueType;
  int64_t dim = std::min<int64_t>(tiles.getDim(), type.getRank() - 1);
  if (type.getDimSize(dim) != tiles.extent())
    return op->emitError() << "'" << name << "' has tiles over " << tiles.extent()
                           << " elements of dimension " << dim << " of " << type;
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  StringRef name = attr.getName();
  if (name == kInAttr || name == kOutAttr) {
    auto array = dyn_cast<ArrayAttr>(attr.getValue());
    size_t count = name == kInAttr ? op->getNumOperands() : op->getNumResults();
    if (!array || array.size() != count || !llvm::all_of(array, isSharding))
      return op->emitError() << "'" << name << "' must hold " << count << " shardings, but is "
                             << attr.getValue();
    TypeRange types = name == kInAttr ? TypeRange(op->getOperandTypes()) : TypeRange(op->getResultTypes());
    for (auto [sharding, type] : llvm::zip(array, types))
      if (failed(checkTilesOf(op, name, sharding, type)))
        return failure();
    return success();
  }
  if (name == kTopologyAttr || name == kMeshAttr || name == kLimitsAttr) {
    bool right = (name == kTopologyAttr && isa<TopologyAttr>(attr.getValue())) ||
                 (name == kMeshAttr && isa<MeshAttr>(attr.getValue())) ||
                 (name == kLimitsAttr && isa<LimitsAttr>(attr.getValue()));
    if (!right || !isa<ModuleOp>(op))
      return op->emitError() << "'" << name << "' must be a #" << name << " on a module";
    auto mesh = op->getAttrOfType<MeshAttr>(kMeshAttr);
    auto topology = op->getAttrOfType<TopologyAttr>(kTopologyAttr);
    if (name == kMeshAttr && topology)
      for (int64_t device : mesh.getDevices())
        if (device >= static_cast<int64_t>(topology.getDevices().size()))
          return op->emitError() << "the mesh names device " << device << " of "
                                 << topology.getDevices().size();
    return success();
  }
  if (name == kStageAttr || name == kRankAttr || name == kTpIndexAttr) {
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (!number || number.getInt() < 0)
      return op->emitError() << "'" << name << "' must be a non-negative integer";
    return success();
  }
  return op->emitError() << "unknown attribute '" << name << "' of the dist dialect";
}
