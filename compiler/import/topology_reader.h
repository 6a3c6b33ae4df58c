// Shared between the files of the topology reader: kinds of links with their defaults, and the link section.
#pragma once

#include "compiler/import/json.h"
#include "compiler/import/topology.h"

#include <map>

namespace llmc::detail {

using DeviceNumbers = std::map<std::string, int64_t>; // id -> index

// Reads links, link_groups, default_link and default_network_link of the root into topology.links, in the
// order (a, b) with a < b; adds HOST links between CPU devices of one host, and reports GPU pairs left over.
void readLinks(const Json &root, const DeviceNumbers &numbers, Topology &topology);

// Refuses speeds that no device has, above all plain numbers whose unit was forgotten. `unit` is what plain numbers
// count; `example` shows how to write a real one.
void checkSpeed(const Json &value, double speed, double least, const char *unit, const char *example);

} // namespace llmc::detail
