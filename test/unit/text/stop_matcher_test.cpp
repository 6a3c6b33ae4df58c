// Stop strings over streamed text, against a plain search over the whole text, with every way to cut it.
#include "runtime/text/stop_matcher.h"

#include <gtest/gtest.h>
#include <random>

namespace llmrt::text {
namespace {

struct Outcome {
  std::string text;
  bool stopped = false;
  size_t index = 0;
  bool operator==(const Outcome &) const = default;
};

// The definition: the first position at which some stop string ends; the longest of those that end there.
Outcome search(const std::string &text, const std::vector<std::string> &stops, bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {
    Outcome best;
    size_t length = 0;
    for (size_t i = 0; i < stops.size(); ++i)
      if (!stops[i].empty() && text.substr(0, end).ends_with(stops[i]) && stops[i].size() > length) {
        length = stops[i].size();
        best = {text.substr(0, include ? end : end - length), true, i};
      }
    if (best.stopped)
      return best;
  }
  return {text};
}

// No text may come out before it is certain; `stream` checks that nothing emitted belongs to a stop string.
Outcome stream(const std::vector<std::string> &pieces, const std::vector<std::string> &stops, bool include) {
  StopMatcher matcher(stops, include);
  Outcome out;
  for (const std::string &piece : pieces) {
    auto result = matcher.push(piece);
    out.text += result.text;
    if (result.stopped) {
      out.stopped = true;
      out.index = result.stop_index;
      EXPECT_EQ(matcher.push("more").text, "");
      break;
    }
  }
  out.text += matcher.finish();
  return out;
}

TEST(StopMatcher, EqualsSearchForEveryCut) {
  std::mt19937 rng(1);
  auto random_text = [&](size_t longest) {
    std::string out;
    size_t n = rng() % (longest + 1);
    for (size_t i = 0; i < n; ++i)
      out += "aab"[rng() % 3];
    return out;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = rng() % 4; i-- > 0;)
      stops.push_back(random_text(4));
    std::string text = random_text(14);
    std::vector<std::string> pieces;
    for (size_t pos = 0; pos < text.size();) {
      size_t n = 1 + rng() % 4;
      pieces.push_back(text.substr(pos, n));
      pos += n;
    }
    for (bool include : {false, true}) {
      Outcome expected = search(text, stops, include), got = stream(pieces, stops, include);
      if (expected.stopped) // repeated stop strings may report either index
        expected.index = got.index = stops.at(got.index) == stops.at(expected.index) ? 0 : got.index;
      ASSERT_EQ(got.text, expected.text) << text;
      ASSERT_EQ(got.stopped, expected.stopped) << text;
    }
  }
}

TEST(StopMatcher, EmitsAsEarlyAsPossible) {
  StopMatcher m({"</s>", "stop"});
  EXPECT_EQ(m.push("Hello <").text, "Hello ");
  EXPECT_EQ(m.push("/").text, "");
  EXPECT_EQ(m.push("b>").text, "</b>");
  EXPECT_EQ(m.push(" st").text, " ");
  EXPECT_EQ(m.push("art st").text, "start ");
  EXPECT_EQ(m.push("o").text, "");
  auto end = m.push("p it");
  EXPECT_EQ(end.text, "");
  EXPECT_TRUE(end.stopped);
  EXPECT_EQ(end.stop_index, 1u);
  EXPECT_EQ(m.finish(), "");
}

TEST(StopMatcher, KeepsTheTail) {
  StopMatcher m({"\n\nUser:"});
  EXPECT_EQ(m.push("ok\n\nUse").text, "ok");
  EXPECT_EQ(m.finish(), "\n\nUse");
  EXPECT_EQ(m.push("again").text, "again"); // starts over
}

TEST(StopMatcher, NeverBreaksACharacter) {
  StopMatcher m({"😀😀"});
  EXPECT_EQ(m.push("a😀").text, "a");
  EXPECT_EQ(m.push("😁").text, "😀😁");
}

TEST(StopMatcher, CopiesGoTheirOwnWays) {
  const StopMatcher fresh({"abc"});
  StopMatcher one = fresh, other = fresh;
  EXPECT_EQ(one.push("xab").text, "x");
  EXPECT_EQ(other.push("ya").text, "y");
  EXPECT_EQ(other.push("bd").text, "abd");
  auto result = one.push("cd");
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.text, "");
  EXPECT_FALSE(other.stopped());
}

TEST(StopMatcher, IsLinear) {
  std::string stop = std::string(4000, 'a') + "b";
  StopMatcher m({stop});
  std::string text(1 << 20, 'a'), out;
  for (size_t i = 0; i < text.size(); i += 4096)
    out += m.push(std::string_view(text).substr(i, 4096)).text;
  out += m.finish();
  EXPECT_EQ(out, text);
}

} // namespace
} // namespace llmrt::text
