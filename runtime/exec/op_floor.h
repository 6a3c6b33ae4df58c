// The least time that ops can take on devices of measured limits: each op by itself, and all of a step one after the other,
// which is what a runtime that runs op by op can come near to.
#pragma once

#include "runtime/exec/op_cost.h"

#include <vector>

namespace llmrt::exec {

// Seconds: bytes over read bandwidth or operations over product rate, whichever is longer, of `share` of all devices.
double floor_seconds(const OpCost &cost, const Ceilings &ceilings, double share);

// Seconds of a step whose ops each take their floor, one after the other: the op-serial roofline. `placement`: the device of
// each rank (Executor::placement()); empty: they share one. A mean over the devices, each with all ops of its ranks, so where
// stages work at once it is the time from one step's end to the next one's.
double serial_floor_seconds(const plan::LoadedPlan &plan, const StepBatch &step, const Ceilings &ceilings,
                            const std::vector<int> &placement);

// A decode step of `batch` sequences, each with `context` tokens once it is done. For counting only: pages are not named.
StepBatch decode_shape(const plan::LoadedPlan &plan, int batch, int context);

} // namespace llmrt::exec
