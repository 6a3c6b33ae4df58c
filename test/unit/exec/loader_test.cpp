// The loader's results: every element of every weight, for each dtype, layout and kind of box, against tensors
// dequantised as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/dequant.h"
#include "kernels/cpu/linear.h"
#include "runtime/exec/fill.h"
#include "runtime/exec/weight_loader.h"
#include "test/unit/exec/loader_plan.h"

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::exec::testing;
using plan::DType;
using plan::Layout;

namespace {

const std::vector<std::pair<DType, cpu::GgmlType>> kTypes = {
    {DType::F32, cpu::GgmlType::F32},   {DType::F16, cpu::GgmlType::F16},   {DType::BF16, cpu::GgmlType::BF16},
    {DType::Q4_0, cpu::GgmlType::Q4_0}, {DType::Q4_1, cpu::GgmlType::Q4_1}, {DType::Q5_0, cpu::GgmlType::Q5_0},
    {DType::Q5_1, cpu::GgmlType::Q5_1}, {DType::Q8_0, cpu::GgmlType::Q8_0}, {DType::Q4_K, cpu::GgmlType::Q4_K},
    {DType::Q5_K, cpu::GgmlType::Q5_K}, {DType::Q6_K, cpu::GgmlType::Q6_K}};

cpu::DType memory_type(DType dtype) {
  return dtype == DType::F32 ? cpu::DType::f32 : dtype == DType::F16 ? cpu::DType::f16 : cpu::DType::bf16;
}

// The whole tensor as f32.
std::vector<float> whole(const LoaderPlan &plan, uint32_t index) {
  const plan::TensorT &tensor = *plan.plan.tensors[index];
  std::vector<float> values(tensor.rows * tensor.cols);
  if (tensor.file < 0)
    fill_values(values.data(), tensor.fill, tensor.fill_scale, fill_seed(tensor.name), 0, values.size());
  else
    for (const auto &[dtype, type] : kTypes)
      if (dtype == tensor.dtype) {
        const std::vector<uint8_t> aligned(plan.data(index), plan.data(index) + tensor.bytes);
        cpu::dequantize(values.data(), aligned.data(), type, static_cast<int64_t>(values.size()));
      }
  return values;
}

// Loads the plan and compares every element of every weight with what its parts say.
void load_and_compare(const LoaderPlan &plan, unsigned threads = 2) {
  const auto loaded = plan.pack();
  std::vector<Region> regions;
  std::vector<WeightRegion> bases;
  for (uint32_t rank = 0; rank < loaded->num_ranks(); ++rank) {
    regions.emplace_back(loaded->program(rank).weight_bytes(), "a test");
    bases.push_back({regions.back().data(), planned_places(loaded->program(rank))});
  }
  uint64_t last = 0, total = 0;
  WeightLoad options;
  options.threads = threads;
  options.on_progress = [&](uint64_t done, uint64_t of) {
    EXPECT_GE(done, last);
    last = done;
    total = of;
  };
  load_weights(*loaded, bases, options);
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0u);

  for (size_t rank = 0; rank < regions.size(); ++rank)
    for (const auto &weight : plan.plan.programs[rank]->weights) {
      std::vector<float> expected(weight->rows * weight->cols);
      for (const auto &part : weight->parts) {
        const std::vector<float> tensor = whole(plan, part->tensor);
        for (uint64_t i = 0; i < part->rows; ++i)
          std::copy_n(tensor.begin() + static_cast<int64_t>(
                                           (part->row + i) * plan.plan.tensors[part->tensor]->cols + part->col),
                      part->cols,
                      expected.begin() + static_cast<int64_t>((part->dst_row + i) * weight->cols + part->dst_col));
      }
      // What the element looks like once it is stored in the weight's dtype.
      const cpu::DType dtype = memory_type(weight->dtype);
      std::vector<std::byte> stored(expected.size() * 4);
      cpu::from_f32(stored.data(), dtype, expected.data(), static_cast<int64_t>(expected.size()));
      cpu::to_f32(expected.data(), stored.data(), dtype, static_cast<int64_t>(expected.size()));
      std::vector<float> row(weight->cols);
      for (uint64_t n = 0; n < weight->rows; ++n) {
        const std::byte *data = regions[rank].data() + weight->offset;
        if (weight->layout == Layout::Packed16)
          cpu::unpack_weight_row(row.data(), data, dtype, static_cast<int64_t>(weight->rows),
                                 static_cast<int64_t>(weight->cols), static_cast<int64_t>(n));
        else
          cpu::to_f32(row.data(), data + n * weight->cols * cpu::dtype_bytes(dtype), dtype,
                      static_cast<int64_t>(weight->cols));
        for (uint64_t k = 0; k < weight->cols; ++k) { // which NaN it is does not matter
          const float is = row[k], want = expected[n * weight->cols + k];
          ASSERT_TRUE(std::memcmp(&is, &want, 4) == 0 || (std::isnan(is) && std::isnan(want)))
              << weight->name << " row " << n << " column " << k << ": " << is << " for " << want;
        }
      }
    }
}

TEST(Loader, EveryFileTypeIntoEveryMemoryType) {
  for (const auto &[file_type, ggml] : kTypes)
    for (const DType memory : {DType::F32, DType::BF16, DType::F16})
      for (const Layout layout : {Layout::RowMajor, Layout::Packed16}) {
        SCOPED_TRACE(std::string(plan::name_of(file_type)) + " to " + plan::name_of(memory) + " " +
                     plan::name_of(layout));
        LoaderPlan plan;
        const uint32_t tensor = plan.add_tensor("t", file_type, 37, 512);
        plan.add_weight(0, "w", memory, layout, 37, 512).parts.push_back(LoaderPlan::part(tensor, 0, 37, 0, 512));
        load_and_compare(plan);
      }
}

TEST(Loader, BoxesOverRowsAndColumnsInsideBlocks) {
  for (const auto &[file_type, ggml] : kTypes) {
    SCOPED_TRACE(plan::name_of(file_type));
    LoaderPlan plan;
    const uint32_t tensor = plan.add_tensor("t", file_type, 50, 1024);
    // Uneven columns: 341 | 342 | 341, which cut through every kind of block.
    const uint64_t columns[] = {0, 341, 683, 1024};
    for (uint32_t rank = 0; rank < 3; ++rank)
      plan.add_weight(rank, "column", DType::F32, Layout::Packed16, 50, columns[rank + 1] - columns[rank])
          .parts.push_back(LoaderPlan::part(tensor, 0, 50, columns[rank], columns[rank + 1] - columns[rank]));
    const uint64_t rows[] = {0, 17, 34, 50};
    for (uint32_t rank = 0; rank < 3; ++rank)
      plan.add_weight(rank, "row", DType::BF16, Layout::Packed16, rows[rank + 1] - rows[rank], 1024)
          .parts.push_back(LoaderPlan::part(tensor, rows[rank], rows[rank + 1] - rows[rank], 0, 1024));
    load_and_compare(plan, 3);
  }
}

TEST(Loader, NarrowSlicesOfLongRowsAreReadRowByRow) {
  for (const Layout layout : {Layout::RowMajor, Layout::Packed16})
    for (const DType memory : {DType::F32, DType::BF16}) { // as they are, and converted
      LoaderPlan plan;
      const uint32_t tensor = plan.add_tensor("t", DType::F32, 40, 9000);
      plan.add_weight(0, "w", memory, layout, 33, 100).parts.push_back(LoaderPlan::part(tensor, 5, 33, 8000, 100));
      load_and_compare(plan);
    }
}

TEST(Loader, SlicesOfTheMemorysTypeAreCopied) {
  for (const DType type : {DType::F32, DType::F16, DType::BF16})
    for (const Layout layout : {Layout::RowMajor, Layout::Packed16}) {
      LoaderPlan plan;
      const uint32_t a = plan.add_tensor("a", type, 70, 333), b = plan.add_tensor("b", type, 70, 40);
      const uint64_t columns[] = {0, 111, 223, 333}; // short gaps between rows: read at once, skipped in memory
      for (uint32_t rank = 0; rank < 3; ++rank)
        plan.add_weight(rank, "column", type, layout, 70, columns[rank + 1] - columns[rank])
            .parts.push_back(LoaderPlan::part(a, 0, 70, columns[rank], columns[rank + 1] - columns[rank]));
      plan::WeightT &side = plan.add_weight(0, "side by side", type, layout, 70, 100); // rows whole in the file, not in memory
      side.parts.push_back(LoaderPlan::part(b, 0, 70, 0, 40, 0, 60));
      side.parts.push_back(LoaderPlan::part(a, 0, 70, 200, 60, 0, 0));
      plan::WeightT &stack = plan.add_weight(1, "stacked", type, layout, 80, 40);
      stack.parts.push_back(LoaderPlan::part(b, 60, 10, 0, 40, 70));
      stack.parts.push_back(LoaderPlan::part(b, 0, 70, 0, 40, 0));
      load_and_compare(plan);
    }
}

TEST(Loader, FusedPartsStackAndSitSideBySide) {
  LoaderPlan plan;
  const uint32_t q = plan.add_tensor("q", DType::Q4_1, 96, 64), k = plan.add_tensor("k", DType::BF16, 48, 64),
                 v = plan.add_tensor("v", DType::F32, 48, 64);
  plan::WeightT &qkv = plan.add_weight(0, "qkv", DType::BF16, Layout::Packed16, 40 + 20 + 21, 64);
  // Out of order on purpose.
  qkv.parts.push_back(LoaderPlan::part(v, 10, 21, 0, 64, 60));
  qkv.parts.push_back(LoaderPlan::part(q, 7, 40, 0, 64, 0));
  qkv.parts.push_back(LoaderPlan::part(k, 28, 20, 0, 64, 40));
  plan::WeightT &side = plan.add_weight(0, "side", DType::F32, Layout::RowMajor, 48, 100);
  side.parts.push_back(LoaderPlan::part(k, 0, 48, 4, 60, 0, 40));
  side.parts.push_back(LoaderPlan::part(v, 0, 30, 0, 40, 0, 0));
  side.parts.push_back(LoaderPlan::part(v, 30, 18, 8, 40, 30, 0));
  load_and_compare(plan);
}

TEST(Loader, RowsInAnyOrderAsPermutedHeadsNeed) {
  LoaderPlan plan;
  const uint32_t tensor = plan.add_tensor("q", DType::Q8_0, 300, 96);
  plan::WeightT &weight = plan.add_weight(0, "q", DType::F32, Layout::Packed16, 300, 96);
  for (uint64_t row = 0; row < 300; ++row)
    weight.parts.push_back(LoaderPlan::part(tensor, row * 77 % 300, 1, 0, 96, row));
  load_and_compare(plan);
}

TEST(Loader, WeightsOfManyPiecesAndSmallVectors) {
  LoaderPlan plan;
  const uint32_t large = plan.add_tensor("large", DType::BF16, 1500, 1000);
  const uint32_t norm = plan.add_tensor("norm", DType::F32, 1, 1000);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    plan.add_weight(rank, "large", DType::BF16, Layout::Packed16, 1500, 1000)
        .parts.push_back(LoaderPlan::part(large, 0, 1500, 0, 1000));
    plan.add_weight(rank, "norm", DType::F32, Layout::RowMajor, 1, 1000)
        .parts.push_back(LoaderPlan::part(norm, 0, 1, 0, 1000));
  }
  load_and_compare(plan, 4);
}

TEST(Loader, FilledTensorsAreTheSameModelForAnySplit) {
  LoaderPlan plan;
  const uint32_t normal = plan.add_filled("n", plan::Fill::Normal, 0.02f, 90, 70);
  const uint32_t ones = plan.add_filled("o", plan::Fill::Ones, 0, 1, 70);
  const uint32_t zeros = plan.add_filled("z", plan::Fill::Zeros, 0, 1, 70);
  plan.add_weight(0, "all", DType::F32, Layout::Packed16, 90, 70).parts.push_back(LoaderPlan::part(normal, 0, 90, 0, 70));
  plan.add_weight(0, "ones", DType::F32, Layout::RowMajor, 1, 70).parts.push_back(LoaderPlan::part(ones, 0, 1, 0, 70));
  plan.add_weight(0, "zeros", DType::F32, Layout::RowMajor, 1, 70)
      .parts.push_back(LoaderPlan::part(zeros, 0, 1, 0, 70));
  for (uint32_t rank = 1; rank < 4; ++rank) {
    plan.add_weight(rank, "rows", DType::F32, Layout::Packed16, 30, 70)
        .parts.push_back(LoaderPlan::part(normal, 30 * (rank - 1), 30, 0, 70));
    plan.add_weight(rank, "cols", DType::F32, Layout::Packed16, 90, 20)
        .parts.push_back(LoaderPlan::part(normal, 0, 90, 20 * (rank - 1), 20));
  }
  load_and_compare(plan);
}

} // namespace
