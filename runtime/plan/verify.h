// Proves, without any device, that a plan can be executed as it stands. `llmc verify` prints what this finds, and
// `llmrt` refuses a plan with any problem before its first allocation.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmrt::plan {

struct Problem {
  std::string check;     // structure | shapes | limits | weights | buffers | memory | kv | heads | vocabulary |
                         // collectives | transfers | topology | output
  int64_t rank = -1;     // -1: not one rank's
  int64_t op = -1;       // index into the rank's ops; -1: not one op's
  std::string op_name;   // "linear", when `op` is set
  std::string message;   // a sentence with the numbers
};

// All problems found, at most a few dozen of each check; empty: the plan is proven. The plan must come from a
// LoadedPlan (a well-formed flatbuffer without shared parts): time and memory are then near-linear in its size.
// Problems of "structure" end the search, because every later proof builds on it.
std::vector<Problem> verify(const Plan &plan);

// "rank 3, op 12 (linear): weights: …"
std::string to_string(const Problem &problem);

// One sentence per line, or an empty string; what llmrt throws when it refuses a plan.
std::string to_string(const std::vector<Problem> &problems);

} // namespace llmrt::plan
