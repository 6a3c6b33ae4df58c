// A process that has to end does, with the reason, and one that ends in time is left alone.
#include "runtime/support/end_watch.h"

#include <gtest/gtest.h>

namespace llmrt {
namespace {

using namespace std::chrono_literals;

TEST(EndWatch, EndsAProcessThatHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        EndWatch watch;
        watch.arm("a device is lost", 50ms);
        watch.arm("something else", 1h); // the first counts
        std::this_thread::sleep_for(30s);
      },
      ::testing::ExitedWithCode(1), "llmrt: error: a device is lost \\(and its devices did not let go within 50 ms");
}

TEST(EndWatch, LeavesAlone) {
  { EndWatch never_armed; }
  const auto start = std::chrono::steady_clock::now();
  {
    EndWatch watch;
    watch.arm("nothing", 1h);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

} // namespace
} // namespace llmrt
