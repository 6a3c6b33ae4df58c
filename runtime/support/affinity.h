// Which cores this process may use. Thread counts come from here, so that a container's or taskset's mask is
// respected without anybody asking the kernel twice.
#pragma once

#include <vector>

namespace llmrt {

// Core numbers of the calling thread's affinity mask, ascending; never empty.
std::vector<int> allowed_cores();

// How many threads can run at once: the allowed cores, or fewer where a quota of processor time is less (docker run --cpus).
// Asked once. More threads than a quota lets run would wait for each other while all are held.
unsigned usable_cores();

// Binds the calling thread to `cores`; does nothing where that is not allowed.
void bind_this_thread(const std::vector<int> &cores);

// Names the calling thread for debuggers and profilers (15 characters at most are kept).
void name_this_thread(const char *name);

} // namespace llmrt
