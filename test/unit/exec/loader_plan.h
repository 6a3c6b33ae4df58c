// Plans that hold nothing but weights, and the files they come from: what the loader's tests need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/plan/access.h"
#include "runtime/plan/hash.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/plan/version.h"
#include "runtime/support/region.h"

namespace llmrt::exec::testing {

// A folder that goes when the test ends.
class TempFolder {
public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "llmrt-exec-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string &name = "") const { return name.empty() ? path_ : path_ + "/" + name; }

private:
  std::string path_;
};

class LoaderPlan {
public:
  LoaderPlan() {
    plan.version_major = plan::kVersionMajor;
    plan.version_minor = plan::kVersionMinor;
    plan.tp = plan.pp = 1;
  }

  // Writes `bytes` and returns the file's index. The first 64 bytes count as its header.
  uint32_t add_file(const std::string &name, const std::vector<uint8_t> &bytes) {
    std::ofstream(folder.path(name), std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    auto file = std::make_unique<plan::FileT>();
    file->path = name;
    file->bytes = bytes.size();
    file->header_bytes = std::min<uint64_t>(bytes.size(), 64);
    file->header_hash = plan::hash_bytes(bytes.data(), file->header_bytes);
    plan.files.push_back(std::move(file));
    return static_cast<uint32_t>(plan.files.size() - 1);
  }

  // A file of random bytes that holds one tensor at an odd offset.
  uint32_t add_tensor(const std::string &name, plan::DType dtype, uint64_t rows, uint64_t cols) {
    uint64_t bytes = 0;
    EXPECT_TRUE(plan::row_major_bytes(dtype, rows, cols, bytes));
    const uint64_t offset = 77;
    std::mt19937 random(static_cast<unsigned>(plan.tensors.size() + 1));
    std::vector<uint8_t> content(offset + bytes + 13);
    for (uint8_t &byte : content)
      byte = static_cast<uint8_t>(random());
    contents.push_back(content);
    auto tensor = std::make_unique<plan::TensorT>();
    tensor->name = name;
    tensor->file = static_cast<int32_t>(add_file(name + ".bin", content));
    tensor->offset = offset;
    tensor->bytes = bytes;
    tensor->dtype = dtype;
    tensor->rows = rows;
    tensor->cols = cols;
    plan.tensors.push_back(std::move(tensor));
    return static_cast<uint32_t>(plan.tensors.size() - 1);
  }

  uint32_t add_filled(const std::string &name, plan::Fill fill, float scale, uint64_t rows, uint64_t cols) {
    auto tensor = std::make_unique<plan::TensorT>();
    tensor->name = name;
    tensor->dtype = plan::DType::F32;
    tensor->rows = rows;
    tensor->cols = cols;
    tensor->fill = fill;
    tensor->fill_scale = scale;
    plan.tensors.push_back(std::move(tensor));
    contents.emplace_back();
    return static_cast<uint32_t>(plan.tensors.size() - 1);
  }

  static std::unique_ptr<plan::WeightPartT> part(uint32_t tensor, uint64_t row, uint64_t rows, uint64_t col,
                                                 uint64_t cols, uint64_t dst_row = 0, uint64_t dst_col = 0) {
    auto part = std::make_unique<plan::WeightPartT>();
    part->tensor = tensor;
    part->row = row;
    part->rows = rows;
    part->col = col;
    part->cols = cols;
    part->dst_row = dst_row;
    part->dst_col = dst_col;
    return part;
  }

  plan::WeightT &add_weight(uint32_t rank, const std::string &name, plan::DType dtype, plan::Layout layout,
                            uint64_t rows, uint64_t cols) {
    while (plan.programs.size() <= rank) {
      plan.programs.push_back(std::make_unique<plan::ProgramT>());
      plan.programs.back()->rank = static_cast<uint32_t>(plan.programs.size() - 1);
    }
    plan::ProgramT &program = *plan.programs[rank];
    auto weight = std::make_unique<plan::WeightT>();
    weight->name = name;
    weight->dtype = dtype;
    weight->layout = layout;
    weight->rows = rows;
    weight->cols = cols;
    EXPECT_TRUE(plan::weight_bytes(dtype, layout, rows, cols, weight->bytes));
    weight->offset = program.weight_bytes;
    program.weight_bytes += (weight->bytes + 255) / 256 * 256;
    program.weights.push_back(std::move(weight));
    return *program.weights.back();
  }

  std::shared_ptr<const plan::LoadedPlan> pack() const {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(plan::Plan::Pack(builder, &plan), plan::PlanIdentifier());
    return plan::LoadedPlan::from_bytes({builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()},
                                        folder.path("plan.fb"));
  }

  // The tensor's bytes in its file.
  const uint8_t *data(uint32_t tensor) const { return contents[tensor].data() + plan.tensors[tensor]->offset; }

  TempFolder folder;
  plan::PlanT plan;
  std::vector<std::vector<uint8_t>> contents; // by tensor
};

} // namespace llmrt::exec::testing
