// What the loader refuses, and in which words: files that are not those of the plan, boxes that do not fit.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/exec/weight_loader.h"
#include "runtime/support/error.h"
#include "test/unit/exec/loader_plan.h"

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::exec::testing;
using plan::DType;
using plan::Layout;

namespace {

// A plan of one weight that loads; `harm` breaks it, before packing or on the disk.
std::string error_after(const std::function<void(LoaderPlan &)> &harm) {
  LoaderPlan plan;
  const uint32_t tensor = plan.add_tensor("model.norm", DType::BF16, 40, 64);
  plan.add_weight(0, "w", DType::F32, Layout::Packed16, 40, 64).parts.push_back(LoaderPlan::part(tensor, 0, 40, 0, 64));
  harm(plan);
  const auto loaded = plan.pack();
  Region region(plan.plan.programs[0]->weight_bytes, "a test");
  try {
    load_weights(*loaded, {{region.data(), planned_places(loaded->program(0))}}, {});
  } catch (const Error &e) {
    return e.what();
  }
  return "";
}

void expect_parts(const std::string &message, const std::vector<std::string> &parts) {
  for (const std::string &part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST(LoaderErrors, TheUnharmedPlanLoads) {
  EXPECT_EQ(error_after([](LoaderPlan &) {}), "");
}

TEST(LoaderErrors, AMissingFile) {
  expect_parts(error_after([](LoaderPlan &plan) { std::filesystem::remove(plan.folder.path("model.norm.bin")); }),
               {"model.norm.bin", "No such file", "compile the plan again"});
}

TEST(LoaderErrors, AnotherSizeNamesBoth) {
  expect_parts(error_after([](LoaderPlan &plan) { std::filesystem::resize_file(plan.folder.path("model.norm.bin"), 5209); }),
               {"model.norm.bin", "5209", "5210", "compile the plan again"});
}

TEST(LoaderErrors, AnotherHeaderNamesBothHashes) {
  std::string was;
  const std::string message = error_after([&](LoaderPlan &plan) {
    was = plan::hash_hex(plan.plan.files[0]->header_hash);
    std::vector<uint8_t> content = plan.contents[0];
    content[3] ^= 1;
    std::ofstream(plan.folder.path("model.norm.bin"), std::ios::binary)
        .write(reinterpret_cast<const char *>(content.data()), static_cast<std::streamsize>(content.size()));
  });
  expect_parts(message, {"model.norm.bin", "has changed", was, "compile the plan again"});
}

TEST(LoaderErrors, AFolderInPlaceOfAFile) {
  expect_parts(error_after([](LoaderPlan &plan) {
                 std::filesystem::remove(plan.folder.path("model.norm.bin"));
                 std::filesystem::create_directory(plan.folder.path("model.norm.bin"));
               }),
               {"model.norm.bin", "not a regular file"});
}

TEST(LoaderErrors, TensorsThatDoNotFitTheirFile) {
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.tensors[0]->offset = 1000; }),
               {"model.norm", "beyond its file's 5210 bytes"});
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.tensors[0]->offset = UINT64_MAX - 5; }),
               {"model.norm", "beyond its file's"});
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.tensors[0]->rows = 41; }), {"41 x 64", "5120"});
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.tensors[0]->file = 9; }), {"file 9 of 1"});
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.tensors[0]->file = -1; }), {"neither a file nor a fill"});
}

TEST(LoaderErrors, BoxesOutsideTheirTensorOrWeight) {
  const auto part = [](LoaderPlan &plan) -> plan::WeightPartT & { return *plan.plan.programs[0]->weights[0]->parts[0]; };
  for (const std::function<void(LoaderPlan &)> &harm : std::vector<std::function<void(LoaderPlan &)>>{
           [&](LoaderPlan &plan) { part(plan).row = 1; },
           [&](LoaderPlan &plan) { part(plan).col = UINT64_MAX; },
           [&](LoaderPlan &plan) { part(plan).dst_row = 1; },
           [&](LoaderPlan &plan) { part(plan).dst_col = 1; }})
    expect_parts(error_after(harm), {"of rank 0", "exceeds", "40 x 64"});
}

TEST(LoaderErrors, RowsThatNoPartCovers) {
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.programs[0]->weights[0]->parts[0]->rows = 39; }),
               {"2496 of the 2560"});
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.programs[0]->weights[0]->parts.clear(); }), {"0 of the"});
}

TEST(LoaderErrors, WeightsThatDoNotFitTheirRegionOrHaveNoKernel) {
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.programs[0]->weights[0]->offset = 4096; }), {"4096"});
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.programs[0]->weights[0]->bytes = 100; }), {"100"});
  expect_parts(error_after([](LoaderPlan &plan) { plan.plan.programs[0]->weights[0]->dtype = DType::Q4_K; }),
               {"q4_k", "--dtype"});
}

TEST(LoaderErrors, AnErrorInOneThreadEndsAll) {
  LoaderPlan plan;
  const uint32_t tensor = plan.add_tensor("t", DType::F32, 4000, 500);
  plan::WeightT &weight = plan.add_weight(0, "w", DType::F32, Layout::Packed16, 4000, 500);
  weight.parts.push_back(LoaderPlan::part(tensor, 0, 3000, 0, 500));
  const auto loaded = plan.pack();
  Region region(plan.plan.programs[0]->weight_bytes, "a test");
  WeightLoad options;
  options.threads = 4;
  EXPECT_THROW(load_weights(*loaded, {{region.data(), planned_places(loaded->program(0))}}, options), Error);
}

TEST(LoaderErrors, AProgressCallbackMayThrow) {
  LoaderPlan plan;
  const uint32_t tensor = plan.add_filled("t", plan::Fill::Ones, 1, 64, 64);
  plan.add_weight(0, "w", DType::F32, Layout::Packed16, 64, 64).parts.push_back(LoaderPlan::part(tensor, 0, 64, 0, 64));
  const auto loaded = plan.pack();
  Region region(plan.plan.programs[0]->weight_bytes, "a test");
  WeightLoad options;
  options.on_progress = [](uint64_t, uint64_t) { throw Error("enough"); };
  EXPECT_THROW(load_weights(*loaded, {{region.data(), planned_places(loaded->program(0))}}, options), Error);
}

} // namespace
