// The whole of `llmc compile` as a function: import, phases, plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

enum class StopAfter { Llm, Dist, Exec, Plan };

struct CompileOptions {
  std::string model = ".";
  std::string topology;                        // path of topo.json; empty: CPU devices of this machine
  std::string planFolder = ".";                // where the plan will stand: file paths are relative to it
  int64_t tp = 1, pp = 1;
  std::optional<int64_t> maxModelLen;          // default: the model's, or the largest that fits
  std::optional<int64_t> maxNumSeqs;           // default: 64 on CPUs, 256 on GPUs
  std::optional<int64_t> maxBatchedTokens;     // default: 512 on CPUs, 8192 on GPUs
  int64_t pageSize = 16;
  double memoryUtilization = 0.9;
  std::string dtype = "auto";                  // auto | float32 | bfloat16 | float16
  std::string servedModelName;                 // default: the model's folder, or its file without ending
  bool dummyWeights = false;                   // --load-format dummy
  StopAfter stopAfter = StopAfter::Plan;
  bool printIrAfterAll = false;
  bool timing = false;
  std::string commandLine;                     // for the plan's provenance
};

struct CompileResult {
  std::string mlir;               // with stopAfter other than Plan: the module's text
  std::vector<uint8_t> plan;      // with Plan
  std::vector<std::string> warnings;
};

// Throws llmc::Error, with everything that the passes reported, when the model cannot be compiled so.
CompileResult compileModel(const CompileOptions &options);

} // namespace llmc
