// Values of tensors without a file (--load-format dummy). Each value depends on the tensor's name and the element's
// place in the whole tensor alone, so that every split of a model over ranks gives the same model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/plan/plan_generated.h"

namespace llmrt::exec {

// The seed of a tensor: XXH64 of its name.
uint64_t fill_seed(std::string_view tensor_name);

// out[i] = the value of element `first` + i (counted row-major in the whole tensor), for n elements.
// Normal: mean 0, standard deviation `scale`; bell-shaped, within ±3.47 standard deviations (the sum of four
// uniform 16-bit numbers, which needs no transcendental function). Ones and Zeros as they say.
void fill_values(float *out, plan::Fill fill, float scale, uint64_t seed, uint64_t first, size_t n);

} // namespace llmrt::exec
