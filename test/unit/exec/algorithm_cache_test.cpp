// What was kept comes back; files that are damaged, cut, of another version or for another context are as none.
#include <gtest/gtest.h>

#include "runtime/exec/algorithm_cache.h"
#include "test/unit/exec/loader_plan.h" // TempFolder

#include <fstream>
#include <sstream>

using namespace llmrt::exec;
using llmrt::exec::testing::TempFolder;

namespace {

const std::string kContext = "GPU 9000, 132 SMs, driver 13000, cublasLt 130100";
const Algorithms kSome = {{"64 4608 3584 3584 4608 2 2 0", {0, 1, 0xab, 0xff}}, {"8 1 2 3 4 0 0 1", {7}}};

std::string read(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(AlgorithmCache, FormatAndParse) {
  const std::string text = format_algorithms(kSome, kContext);
  EXPECT_NE(text.find("\n64 4608 3584 3584 4608 2 2 0: 0001abff\n"), std::string::npos) << text;
  EXPECT_EQ(parse_algorithms(text, kContext), kSome);
  EXPECT_EQ(parse_algorithms(format_algorithms({}, kContext), kContext), Algorithms());
}

TEST(AlgorithmCache, AnotherContextOrVersion) {
  const std::string text = format_algorithms(kSome, kContext);
  EXPECT_FALSE(parse_algorithms(text, kContext + " "));
  EXPECT_FALSE(parse_algorithms(text, ""));
  std::string newer = text;
  newer.replace(newer.find(" 1\n"), 3, " 2\n");
  EXPECT_FALSE(parse_algorithms(newer, kContext));
}

TEST(AlgorithmCache, EveryDamageIsSeen) {
  const std::string text = format_algorithms(kSome, kContext);
  for (size_t cut = 0; cut < text.size(); ++cut)
    EXPECT_FALSE(parse_algorithms(text.substr(0, cut), kContext)) << "cut at " << cut;
  for (size_t at = 0; at < text.size(); ++at)
    for (const unsigned char flip : {0x01, 0x20, 0x80}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EXPECT_FALSE(parse_algorithms(damaged, kContext)) << "byte " << at << " ^ " << int{flip};
    }
  EXPECT_FALSE(parse_algorithms(text + "x", kContext));
  EXPECT_FALSE(parse_algorithms(text + text, kContext));
}

// Right by their checksum, wrong all the same.
TEST(AlgorithmCache, LinesThatMakeNoSense) {
  const auto sealed = [](const std::string &lines, size_t count) {
    const std::string body = "llmrt algorithms 1\n" + kContext + "\n" + lines;
    return body + "end " + std::to_string(count) + " " + llmrt::plan::hash_hex(llmrt::plan::hash_bytes(body.data(), body.size())) + "\n";
  };
  EXPECT_TRUE(parse_algorithms(sealed("a: 00\n", 1), kContext));
  for (const char *bad : {"a: 0\n", "a: 0g\n", "a: \n", "a:00\n", ": 00\n", "a\n", "\n", "a: 00\na: 01\n", "a: AB\n"})
    EXPECT_FALSE(parse_algorithms(sealed(bad, 1), kContext)) << bad;
  EXPECT_FALSE(parse_algorithms(sealed("a: 00\n", 2), kContext));
  EXPECT_FALSE(parse_algorithms(sealed("a: " + std::string(10000, '0') + "\n", 1), kContext));
}

TEST(AlgorithmCache, KeepsFromStartToStart) {
  const TempFolder folder;
  const std::filesystem::path deep = std::filesystem::path(folder.path()) / "a" / "b";
  std::filesystem::path file;
  {
    AlgorithmCache cache(deep, kContext);
    file = cache.file();
    EXPECT_FALSE(cache.find("x"));
    for (const auto &[key, bytes] : kSome)
      cache.put(key, bytes);
    EXPECT_EQ(cache.find(kSome.begin()->first), kSome.begin()->second);
    AlgorithmCache other(deep, kContext); // another process
    other.put("other", {1, 2});
  }
  {
    const AlgorithmCache cache(deep, kContext), stranger(deep, "another device");
    for (const auto &[key, bytes] : kSome)
      EXPECT_EQ(cache.find(key), bytes);
    EXPECT_EQ(cache.find("other"), (AlgorithmBytes{1, 2}));
    EXPECT_FALSE(stranger.find("other"));
    EXPECT_NE(stranger.file(), file);
  }
  size_t files = 0;
  for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator(deep))
    ++files;
  EXPECT_EQ(files, 1u) << "nothing temporary stays";

  std::ofstream(file, std::ios::binary) << read(file).substr(0, 40);
  AlgorithmCache damaged(deep, kContext);
  EXPECT_FALSE(damaged.find("other"));
  damaged.put("new", {3});
  EXPECT_EQ(parse_algorithms(read(file), kContext), (Algorithms{{"new", {3}}}));
}

TEST(AlgorithmCache, WhereNothingCanBeWritten) {
  const TempFolder folder;
  std::ofstream(folder.path("file")) << "in the way";
  ::testing::internal::CaptureStderr();
  {
    AlgorithmCache cache(folder.path("file"), kContext);
    cache.put("a", {1});
    cache.put("b", {2});
    EXPECT_EQ(cache.find("a"), AlgorithmBytes{1});
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot be kept"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

} // namespace
