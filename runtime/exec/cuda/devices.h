// What CUDA says of this machine: its devices, or why it shows none, and how much of a device is free.
#pragma once

#include "runtime/exec/placement.h"

#include <map>
#include <string>
#include <vector>

namespace llmrt::exec::cuda {

// Why no device can be used, as half a sentence with the remedy; empty where there is one.
std::string why_no_devices();

// Throws llmrt::Error.
LiveMachine live_machine();

// Whether kernels on one device can be let to the memory of another; a device reaches itself. Throws llmrt::Error.
bool can_access(int from, int to);

// Of each of these devices, which get their contexts by it, all at once. Throws llmrt::Error, also where no kernel runs.
std::map<int, DeviceRoom> open_devices(const std::vector<int> &devices);

} // namespace llmrt::exec::cuda
