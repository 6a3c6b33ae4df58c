// The topology as the module attribute that passes read.
#pragma once

#include "compiler/import/topology.h"
#include "dialects/dist/DistDialect.h"

namespace llmc {
dist::TopologyAttr topologyAttr(mlir::MLIRContext *context, const Topology &topology);
} // namespace llmc
