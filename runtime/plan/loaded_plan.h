// A plan in memory, ready to be read: the bytes, proven to be a well-formed flatbuffer of this format's version.
// What the plan says is proven by verify(); this class only makes sure that looking at it is safe.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::plan {

class LoadedPlan {
public:
  // Reads a plan file into memory. Throws llmrt::Error.
  static std::shared_ptr<const LoadedPlan> load(const std::string &path);

  // Takes the bytes of a plan; `name` stands for the path in messages. Throws llmrt::Error.
  static std::shared_ptr<const LoadedPlan> from_bytes(std::vector<uint8_t> bytes, const std::string &name = "plan");

  const Plan &root() const { return *root_; }
  const std::string &path() const { return path_; } // as given to load()
  std::string folder() const;                       // where relative file paths of the plan start
  const std::vector<uint8_t> &bytes() const { return bytes_; }

  // Lookups. Indices are those of the plan; they must be in range (verify() proves the plan's own).
  uint32_t num_ranks() const;
  const Program &program(uint32_t rank) const;
  const Program &output_program() const;
  const Weight &weight(uint32_t rank, uint32_t index) const;
  const Buffer &buffer(uint32_t rank, const View &view) const;
  const Tensor &tensor(const WeightPart &part) const;
  std::string file_path(uint32_t file) const; // resolved against folder()

  // Largest row count that a buffer must hold: max_batched_tokens or max_logits_rows.
  uint32_t max_rows(Rows rows) const;

private:
  LoadedPlan() = default;
  std::vector<uint8_t> bytes_;
  std::string path_;
  const Plan *root_ = nullptr;
};

} // namespace llmrt::plan
