// Counter-based pseudo-random values: a 64-bit mix of seed and index, no state.
#include "runtime/exec/fill.h"

#include <algorithm>

#include "runtime/plan/hash.h"

namespace llmrt::exec {

namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

} // namespace

uint64_t fill_seed(std::string_view tensor_name) { return plan::hash_bytes(tensor_name.data(), tensor_name.size()); }

void fill_values(float *out, plan::Fill fill, float scale, uint64_t seed, uint64_t first, size_t n) {
  if (fill != plan::Fill::Normal) {
    std::fill_n(out, n, fill == plan::Fill::Ones ? 1.0f : 0.0f);
    return;
  }
  // Four uniforms on 0 … 65535: mean 4 × 32767.5, variance 4 × (65536² − 1) / 12.
  const float to_unit = scale / 37837.227f; // sqrt((65536² − 1) / 3)
  for (size_t i = 0; i < n; ++i) {
    const uint64_t bits = mix(seed ^ mix(first + i));
    const int64_t sum = static_cast<int64_t>((bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) +
                                             (bits >> 48));
    out[i] = static_cast<float>(sum - 131070) * to_unit;
  }
}

} // namespace llmrt::exec
