// Safetensors headers: a good one, and every way in which one can be bad.
#include "compiler/import/safetensors.h"

#include "compiler/import/files.h"
#include "test/unit/import/support.h"

using namespace llmc;
using namespace llmc::test;

namespace {

SafetensorsHeader parse(const std::string &header, uint64_t dataBytes) {
  return parseSafetensorsHeader(header, 8 + header.size() + dataBytes, "f.safetensors");
}

void expectBad(const std::string &header, uint64_t dataBytes, const std::vector<std::string> &parts) {
  expectError([&] { parse(header, dataBytes); }, parts);
}

TEST(Safetensors, ReadsAFile) {
  Folder folder;
  std::string path = folder.write("f.safetensors",
                                  safetensors({{"b", "BF16", {2, 3}}, {"a", "F32", {5}}, {"s", "F16", {}}}));
  InputFile file(path);
  SafetensorsHeader header = readSafetensorsHeader(file);
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "b"); // in the order of the data
  EXPECT_EQ(header.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[0].begin, header.dataStart);
  EXPECT_EQ(header.tensors[0].end, header.dataStart + 12);
  EXPECT_EQ(header.tensors[1].dtype, "F32");
  EXPECT_EQ(header.tensors[2].end, file.size());
  EXPECT_EQ(header.headerHash, hashBytes(file.read(0, header.dataStart)));
}

TEST(Safetensors, NamesTheMissingBytesOfATruncatedFile) {
  std::string header = R"({"a":{"dtype":"F32","shape":[10],"data_offsets":[0,40]}})";
  EXPECT_NO_THROW(parse(header, 40));
  expectBad(header, 33, {"f.safetensors is truncated", "so 7 bytes are missing", "download it again"});
}

TEST(Safetensors, RefusesBadLengths) {
  Folder folder;
  auto read = [&](const std::string &content) {
    readSafetensorsHeader(InputFile(folder.write("f", content)));
  };
  expectError([&] { read("abc"); }, {"3 bytes", "at least 8"});
  std::string bomb;
  append(bomb, uint64_t{1} << 40);
  expectError([&] { read(bomb + "{}"); }, {"announce a header of 1099511627776 bytes", "100000000"});
  std::string cut;
  append(cut, uint64_t{50});
  expectError([&] { read(cut + "{}"); }, {"truncated inside its header", "50 bytes", "48 bytes earlier"});
}

TEST(Safetensors, RefusesBadOffsets) {
  expectBad(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, {"\"a\"", "before its begin"});
  expectBad(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,12]}})", 12,
            {"F32 [2] takes 8 bytes", "span 12"});
  expectBad(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      12, {"\"a\" and \"b\" overlap"});
  expectBad(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[18446744073709551600,18446744073709551608]}})",
            8, {"overflow 64 bits"});
  expectBad(R"({"a":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,0]}})", 0,
            {"overflows 64 bits"});
  expectBad(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})", 0, {"impossible shape"});
  expectBad(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
            {"impossible shape"});
}

TEST(Safetensors, RefusesBadStructure) {
  expectBad(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      4, {"\"a\" stands twice"});
  expectBad(R"({"a":{"dtype":"F32","shape":[1]}})", 4, {"needs dtype, shape and two data_offsets"});
  expectBad(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4,
            {"needs dtype, shape and two data_offsets"});
  expectBad(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4,
            {"a number where none may stand"});
  expectBad(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, {"unknown field \"x\""});
  expectBad(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, {"a number where none may stand"});
  expectBad(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4,
            {"a list where none may stand"});
  expectBad(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4,
            {"a fraction where none may stand"});
  expectBad(R"({"a":3})", 4, {"a number where none may stand", "\"a\""});
  expectBad("[1]", 4, {"a list where none may stand"});
  expectBad("{", 4, {"not valid JSON"});
  expectBad(std::string(200000, '['), 4, {"a list where none may stand"});
  expectBad(R"({"__metadata__":{"a":{"b":1}}})", 4, {"an object where none may stand"});
}

TEST(Safetensors, AllowsEmptyTensorsAndGaps) {
  SafetensorsHeader header = parse(
      R"({"e":{"dtype":"F32","shape":[0,4],"data_offsets":[4,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
      12);
  EXPECT_EQ(header.tensors.size(), 3u);
}

} // namespace
