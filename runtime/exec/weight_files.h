// The weight files of a plan, opened for reading. Opening proves that they are the files that the plan was made
// from: their size and the hash of their header must match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/loaded_plan.h"

namespace llmrt::exec {

class WeightFiles {
public:
  // Opens and checks every file of the plan. Relative paths start at `folder`; empty: at the plan's own folder.
  // Throws llmrt::Error naming the file, both sizes or hashes, and the remedy.
  WeightFiles(const plan::LoadedPlan &plan, const std::string &folder);
  ~WeightFiles();
  WeightFiles(const WeightFiles &) = delete;
  WeightFiles &operator=(const WeightFiles &) = delete;

  // Reads exactly `bytes` bytes at `offset`. Thread-safe. Throws llmrt::Error.
  void read(uint32_t file, uint64_t offset, void *out, size_t bytes) const;

private:
  struct File {
    std::string path;
    int descriptor = -1;
  };
  void open_and_check(const plan::File &expected, File &file) const;

  std::vector<File> files_;
};

} // namespace llmrt::exec
