// Every CUDA kernel of llmrt, as functions that launch on a stream and return at once. Raw device pointers and sizes;
// shapes in comments, row-major, strides in elements. No function allocates, synchronises or keeps state, so all may be
// captured into graphs. A launch that fails throws std::runtime_error; arguments are the caller's to check.
//
// T tokens of the step, R rows that want logits, S sequences. Activations have one type `act` throughout a call.
#pragma once

#include "kernels/cuda/activation.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/dtype.h"
#include "kernels/cuda/fill.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/measure.h"
#include "kernels/cuda/peers.h"
#include "kernels/cuda/rank_sum.h"
#include "kernels/cuda/rope.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sample.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/token_round.h"
