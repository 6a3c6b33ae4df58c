// The plan format's version, as llmc writes it and as this build reads it. A reader takes any plan with its own
// major number; a higher minor number only adds what an older reader may ignore.
#pragma once

#include <cstdint>

namespace llmrt::plan {

inline constexpr uint32_t kVersionMajor = 0;
inline constexpr uint32_t kVersionMinor = 2;

// Offsets of weights in their region and of buffers in their arena are multiples of this many bytes.
inline constexpr uint64_t kAlignment = 256;

} // namespace llmrt::plan
