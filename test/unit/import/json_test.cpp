// The JSON tree: places in messages, kinds, limits.
#include "compiler/import/json.h"

#include "test/unit/import/support.h"

using namespace llmc;
using namespace llmc::test;

namespace {

void parse(const std::string &text, const JsonLimits &limits = {}) {
  JsonFile(text, "f.json", limits);
}

TEST(Json, ReadsEveryKind) {
  JsonFile file(R"({"a": null, "b": true, "c": -3, "d": 2.5, "e": "x\u00e9", "f": [1, [2]], "g": 1e3})",
                "f.json");
  Json root = file.root();
  EXPECT_TRUE(root.find("a")->isNull());
  EXPECT_FALSE(root.get("a").has_value());
  EXPECT_TRUE(root.get("b")->asBool());
  EXPECT_EQ(root.get("c")->asInt(), -3);
  EXPECT_EQ(root.get("d")->asDouble(), 2.5);
  EXPECT_EQ(root.get("e")->asString(), "x\xc3\xa9");
  EXPECT_EQ(root.get("f")->at(1).at(0).asInt(), 2);
  EXPECT_EQ(root.get("g")->asInt(), 1000); // integral floats are integers
  EXPECT_EQ(root.get("f")->at(1).at(0).path(), "/f/1/0");
}

TEST(Json, NamesLineAndPath) {
  JsonFile file("{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {\n\n    \"c\": \"x\"\n  }\n}", "f.json");
  EXPECT_EQ(file.root().get("a")->at(0).line(), 3u);
  EXPECT_EQ(file.root().get("a")->at(1).line(), 4u); // a newline follows the number at once
  EXPECT_EQ(file.root().get("b")->line(), 6u);
  expectError([&] { file.root().get("b")->get("c")->asInt(); },
              {"f.json:8: /b/c: expected an integer, found a string"});
  expectError([&] { file.root().get("a")->asString(); }, {"f.json:2: /a: expected a string, found a list"});
}

TEST(Json, RefusesWhatIsNotJson) {
  expectError([] { parse(""); }, {"f.json:1", "not valid JSON"});
  expectError([] { parse("{\n\"a\": 1,\n}"); }, {"f.json:3", "not valid JSON"});
  expectError([] { parse("{\"a\": NaN}"); }, {"not valid JSON"});
  expectError([] { parse("{} x"); }, {"not valid JSON"});
  expectError([] { parse("{\"a\": \"\xff\"}"); }, {"not valid JSON"});
  expectError([] { parse("{\"a\": 1e999}"); }, {"f.json:1"});
}

TEST(Json, RefusesDuplicateKeys) {
  expectError([] { parse("{\"a\": 1,\n \"a\": 2}"); }, {"f.json:2", "\"a\" stands twice"});
}

TEST(Json, BoundsDepthNodesAndBytes) {
  expectError([] { parse(std::string(1000000, '[')); }, {"deeper than 64"});
  std::string objects;
  for (int i = 0; i < 100000; ++i)
    objects += "{\"a\":";
  expectError([&] { parse(objects); }, {"deeper than 64"});
  JsonLimits few;
  few.nodes = 3;
  EXPECT_NO_THROW(parse("[1,2]", few));
  expectError([&] { parse("[1,2,3]", few); }, {"more than 3 values"});
  JsonLimits small;
  small.bytes = 10;
  expectError([&] { parse("[1,2,3,4,5,6]", small); }, {"f.json has 13 bytes; at most 10 bytes"});
}

TEST(Json, OffersTheNearestKey) {
  JsonFile file(R"({"memroy": 1})", "f.json");
  expectError(
      [&] {
        file.root().allowOnly({"memory", "name"});
      },
      {"f.json:1: /memroy", "unknown key \"memroy\"", "did you mean \"memory\"?"});
  expectError([&] { file.root().allowOnly({"xyz"}); }, {"known here: xyz"});
}

TEST(Json, IntegersAreExact) {
  JsonFile file(R"([9007199254740993, 18446744073709551615, 1.5, 1e300])", "f.json");
  EXPECT_EQ(file.root().at(0).asInt(), 9007199254740993);
  for (size_t i = 1; i < 4; ++i)
    expectError([&] { file.root().at(i).asInt(); }, {"expected an integer"});
}

} // namespace
