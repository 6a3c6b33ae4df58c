// The activations of gated feed-forward layers.
#pragma once

namespace llmrt::cuda {

enum class Activation { silu, gelu_tanh, gelu };

} // namespace llmrt::cuda
