// Writes NumPy's .npy format, version 1.0 (numpy.lib.format).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace llmrt::tool {

// `data` [rows, cols] as float32. Throws llmrt::Error when the file cannot be written.
void write_npy(const std::string &path, const std::vector<float> &data, size_t rows, size_t cols);

} // namespace llmrt::tool
