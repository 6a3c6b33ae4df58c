// Which devices the kernels of this build run on.
#pragma once

#include <string>

namespace llmrt::cuda {

// Whether there is code for the current device, or code that its driver can translate.
bool has_code_for_device();
// The architectures that were built for: "8.0, 9.0a".
std::string built_for();

} // namespace llmrt::cuda
