// WaitWord: no lost wake-up over many hand-overs, time-outs, closing.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/support/wait_word.h"

using llmrt::WaitWord;
using namespace std::chrono_literals;

namespace {

TEST(WaitWord, PingPongLosesNoWakeUp) {
  for (const WaitWord::Patience spin : {WaitWord::Patience{}, {2us, false}, {20us, true}}) {
    WaitWord ping, pong;
    constexpr int kRounds = 20000;
    std::thread other([&] {
      for (int i = 0; i < kRounds; ++i) {
        ASSERT_EQ(ping.wait(static_cast<uint32_t>(2 * i), spin, 20s), WaitWord::Result::Moved);
        pong.advance();
      }
    });
    for (int i = 0; i < kRounds; ++i) {
      ping.advance();
      ASSERT_EQ(pong.wait(static_cast<uint32_t>(2 * i), spin, 20s), WaitWord::Result::Moved);
    }
    other.join();
  }
}

TEST(WaitWord, TimesOut) {
  WaitWord word;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(word.wait(word.load(), {1us}, 30ms), WaitWord::Result::TimedOut);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
}

TEST(WaitWord, ClosingWakesAndStays) {
  WaitWord word;
  std::thread closer([&] {
    std::this_thread::sleep_for(20ms);
    word.close();
  });
  EXPECT_EQ(word.wait(word.load(), {1us}, 20s), WaitWord::Result::Closed);
  closer.join();
  word.advance();
  EXPECT_TRUE(WaitWord::is_closed(word.load()));
  EXPECT_EQ(word.wait(0, {}, 20s), WaitWord::Result::Closed);
}

} // namespace
