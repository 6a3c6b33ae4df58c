#include "compiler/pipeline/topology_attr.h"

using namespace mlir;

llmc::dist::TopologyAttr llmc::topologyAttr(MLIRContext *context, const Topology &topology) {
  Builder b(context);
  SmallVector<Attribute> hosts;
  for (const std::string &host : topology.hosts)
    hosts.push_back(b.getStringAttr(host));
  SmallVector<dist::DeviceAttr> devices;
  for (const Device &d : topology.devices)
    devices.push_back(dist::DeviceAttr::get(context, d.id, d.kind, d.name, d.uuid, d.pciId, d.host, d.memoryBytes,
                                            d.reservedBytes, d.capability, b.getF64FloatAttr(d.memoryBandwidth),
                                            b.getF64FloatAttr(d.peakFlops)));
  SmallVector<dist::LinkAttr> links;
  for (const Link &l : topology.links)
    links.push_back(dist::LinkAttr::get(context, l.a, l.b, l.kind, b.getF64FloatAttr(l.bandwidth),
                                        b.getF64FloatAttr(l.latency), l.p2p));
  return dist::TopologyAttr::get(context, topology.name, b.getArrayAttr(hosts), devices, links);
}
