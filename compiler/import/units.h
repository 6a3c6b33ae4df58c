// Quantities in topology files: plain numbers in base units, or strings with a unit such as "80GiB",
// "900GB/s", "400Gbit/s", "5us", "989TFLOPS".
#pragma once

#include "compiler/import/json.h"

namespace llmc {

uint64_t parseBytes(const Json &value);     // bytes: B, kB/KB, MB, GB, TB, KiB, MiB, GiB, TiB
double parseBandwidth(const Json &value);   // bytes/s: the above with "/s", and kbit/s … Tbit/s
double parseSeconds(const Json &value);     // s, ms, us, ns
double parseFlops(const Json &value);       // FLOPS with k, M, G, T, P
int64_t parseCapability(const Json &value); // "9.0" or 9.0 -> 90; an integer of 20 and more stands for itself

} // namespace llmc
