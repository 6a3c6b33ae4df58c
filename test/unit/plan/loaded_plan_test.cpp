// Reading plans: what is not one is refused with words, and nothing that is read can lead outside the bytes.
#include "runtime/plan/loaded_plan.h"

#include "runtime/plan/dump.h"
#include "runtime/plan/hash.h"
#include "runtime/plan/verify.h"
#include "runtime/plan/version.h"
#include "runtime/support/error.h"
#include "test/unit/plan/plan_builder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace llmrt::plan;
using namespace llmrt::plan::testing;

namespace {

std::string refusal(std::vector<uint8_t> bytes) {
  try {
    LoadedPlan::from_bytes(std::move(bytes), "p.fb");
  } catch (const llmrt::Error &e) {
    return e.what();
  }
  return "";
}

std::string path(const std::string &name) { return ::testing::TempDir() + "/" + name; }

TEST(LoadedPlan, LoadsAFile) {
  std::vector<uint8_t> bytes = pack(build_tiny_plan());
  std::ofstream(path("tiny.fb"), std::ios::binary).write(reinterpret_cast<char *>(bytes.data()), std::streamsize(bytes.size()));
  auto plan = LoadedPlan::load(path("tiny.fb"));
  EXPECT_EQ(plan->num_ranks(), 4u);
  EXPECT_EQ(plan->bytes(), bytes);
  EXPECT_EQ(plan->output_program().rank(), 2u);
  EXPECT_EQ(plan->max_rows(Rows::Tokens), 32u);
  EXPECT_EQ(plan->max_rows(Rows::Logits), 8u);
  EXPECT_EQ(plan->weight(0, 0).name()->str(), "embed");
  EXPECT_EQ(std::filesystem::path(plan->folder()), std::filesystem::path(path("tiny.fb")).parent_path());
}

TEST(LoadedPlan, FilePaths) {
  TinySpec spec;
  spec.weight_file = "sub/weights.bin";
  EXPECT_EQ(LoadedPlan::from_bytes(pack(build_tiny_plan(spec)), "/a/b/plan.fb")->file_path(0), "/a/b/sub/weights.bin");
  EXPECT_EQ(LoadedPlan::from_bytes(pack(build_tiny_plan(spec)), "plan.fb")->file_path(0), "./sub/weights.bin");
  spec.weight_file = "/abs/weights.bin";
  EXPECT_EQ(LoadedPlan::from_bytes(pack(build_tiny_plan(spec)), "/a/b/plan.fb")->file_path(0), "/abs/weights.bin");
}

TEST(LoadedPlan, MissingFileAndFolder) {
  EXPECT_THROW(LoadedPlan::load(path("not-there.fb")), llmrt::Error);
  EXPECT_THROW(LoadedPlan::load(::testing::TempDir()), llmrt::Error);
}

TEST(LoadedPlan, NotAPlan) {
  EXPECT_NE(refusal({}).find("has 0 bytes"), std::string::npos);
  std::string text = "GGUF but no plan at all";
  EXPECT_NE(refusal({text.begin(), text.end()}).find("its identifier is ' but'"), std::string::npos) << refusal({text.begin(), text.end()});
}

TEST(LoadedPlan, OtherVersion) {
  PlanT plan = build_tiny_plan();
  plan.version_major = 7;
  plan.version_minor = 3;
  std::string message = refusal(pack(plan));
  EXPECT_NE(message.find("format 7.3"), std::string::npos) << message;
  EXPECT_NE(message.find("format 0.x"), std::string::npos) << message;
  EXPECT_NE(message.find("compile the model again"), std::string::npos) << message;
  // A newer minor version only adds what we may ignore.
  plan.version_major = kVersionMajor;
  plan.version_minor = kVersionMinor + 5;
  EXPECT_EQ(refusal(pack(plan)), "");
}

TEST(LoadedPlan, EveryTruncation) {
  TinySpec spec;
  spec.layers = 2;
  std::vector<uint8_t> bytes = pack(build_tiny_plan(spec));
  for (size_t size = 0; size < bytes.size(); size += size < 512 ? 1 : 97) {
    std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + std::ptrdiff_t(size));
    try {
      // Bytes at the end may be unreachable, so a cut plan may load; it must then be safe to look at.
      auto plan = LoadedPlan::from_bytes(std::move(cut));
      verify(plan->root());
      dump_text(plan->root());
    } catch (const llmrt::Error &) {
    }
  }
}

// A small file must not unfold into hours of work: one ops vector, many entries, all the same op.
TEST(LoadedPlan, SharedTablesAreRefused) {
  flatbuffers::FlatBufferBuilder b;
  auto kernel = b.CreateString("k");
  std::vector<uint64_t> many(1000, 1);
  auto counts = b.CreateVector(many);
  View view(0, 0, 1);
  auto gather = CreateAllGather(b, &view, &view, counts);
  auto op = CreateOp(b, OpKind::AllGather, gather.Union(), kernel);
  std::vector<flatbuffers::Offset<Op>> ops(20000, op);
  auto program = CreateProgram(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b.CreateVector(ops));
  auto programs = b.CreateVector(std::vector<flatbuffers::Offset<Program>>{program});
  PlanBuilder plan(b);
  plan.add_programs(programs);
  FinishPlanBuffer(b, plan.Finish());
  std::string message = refusal({b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()});
  EXPECT_NE(message.find("is damaged"), std::string::npos) << message;
}

// Found by fuzzing: flatbuffers' verifier accepts a union of no kind that holds a table all the same.
TEST(LoadedPlan, OpOfNoKind) {
  flatbuffers::FlatBufferBuilder b;
  auto kernel = b.CreateString("k");
  View view(0, 0, 1);
  auto add = CreateAdd(b, &view, &view);
  OpBuilder op(b);
  op.add_kernel(kernel);
  op.add_op(add.Union()); // and no op_type
  auto ops = b.CreateVector(std::vector<flatbuffers::Offset<Op>>{op.Finish()});
  auto program = CreateProgram(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ops);
  auto programs = b.CreateVector(std::vector<flatbuffers::Offset<Program>>{program});
  PlanBuilder plan(b);
  plan.add_programs(programs);
  FinishPlanBuffer(b, plan.Finish());
  std::string message = refusal({b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()});
  EXPECT_NE(message.find("operands and no kind"), std::string::npos) << message;
}

// Found by fuzzing: elements of 8 bytes at an odd multiple of 4.
TEST(LoadedPlan, MisalignedElements) {
  std::vector<uint8_t> bytes = pack(build_tiny_plan());
  // The counts of the gather are [25, 25]: its length, then two 64-bit numbers. The same bytes are found in the file
  // once more, four bytes further, if the offset that leads to them is moved there.
  auto plan = LoadedPlan::from_bytes(bytes);
  const Op &op = *plan->program(2).ops()->Get(plan->program(2).ops()->size() - 1);
  ASSERT_EQ(op.op_type(), OpKind::Gather);
  auto at = [&](const void *p) { return size_t(static_cast<const uint8_t *>(p) - plan->bytes().data()); };
  const auto *table = reinterpret_cast<const flatbuffers::Table *>(op.op());
  size_t field = at(table->GetAddressOf(Gather::VT_COUNTS));
  auto offset = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(bytes.data() + field);
  flatbuffers::WriteScalar<flatbuffers::uoffset_t>(bytes.data() + field, offset + 4);
  EXPECT_NE(refusal(bytes).find("not aligned"), std::string::npos) << refusal(bytes);
}

// Sharing again, with one large string instead of tables.
TEST(LoadedPlan, SharedStringsAreRefused) {
  flatbuffers::FlatBufferBuilder b;
  auto text = b.CreateString(std::string(100000, 'x'));
  std::vector<flatbuffers::Offset<flatbuffers::String>> warnings(10000, text);
  auto provenance = CreateProvenance(b, 0, 0, 0, 0, 0, b.CreateVector(warnings));
  PlanBuilder plan(b);
  plan.add_provenance(provenance);
  FinishPlanBuffer(b, plan.Finish());
  std::string message = refusal({b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()});
  EXPECT_NE(message.find("shared many times"), std::string::npos) << message;
}

// Reference values of XXH64 with seed 0.
TEST(Hash, KnownValues) {
  EXPECT_EQ(hash_hex(hash_bytes("", 0)), "ef46db3751d8e999");
  EXPECT_EQ(hash_hex(hash_bytes("abc", 3)), "44bc2cf5ad770999");
}

} // namespace
