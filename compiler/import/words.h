// Small helpers for error messages: quoting what a file contains, numbers with units, and the nearest of a
// set of known words to a misspelt one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

// "text" with control and non-ASCII bytes escaped, cut after 120 characters: file contents may hold anything.
std::string quote(std::string_view text);

// Valid UTF-8 without control characters?
bool isPlainText(std::string_view text);

// 1536 -> "1.5 KiB", 7 -> "7 bytes".
std::string humanBytes(uint64_t bytes);

// [2, 3] -> "[2, 3]".
std::string shapeText(const std::vector<int64_t> &shape);

// The candidate at the smallest edit distance, or "" when none is within a third of the word's length (at
// least 2).
std::string nearestWord(std::string_view word, const std::vector<std::string> &candidates);

// "a, b and c"; after `most` items "... and 7 more".
std::string listText(const std::vector<std::string> &items, size_t most = 6);

// Product of a shape's dimensions; 0 when a dimension is negative, UINT64_MAX when it overflows.
uint64_t elementCount(const std::vector<int64_t> &shape);

} // namespace llmc
