// What control groups allow, from folders like those that Linux shows.
#include "runtime/support/control_groups.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace llmrt {
namespace {

namespace fs = std::filesystem;

class ControlGroups : public ::testing::Test {
protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("groups." + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string &path, const std::string &text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  GroupLimits limits(const std::string &self) {
    write("self", self);
    return group_limits(root_ / "self", root_ / "fs");
  }

  fs::path root_;
};

TEST_F(ControlGroups, TheLeastOnTheWayToTheRootHolds) { // systemd's MemoryMax of a slice, CPUQuota of a unit
  write("fs/a.slice/memory.max", "4294967296");
  write("fs/a.slice/cpu.max", "max 100000");
  write("fs/a.slice/b.service/memory.max", "8589934592");
  write("fs/a.slice/b.service/cpu.max", "350000 100000");
  const GroupLimits found = limits("0::/a.slice/b.service");
  EXPECT_EQ(found.memory_bytes, 4294967296u);
  EXPECT_EQ(found.cores, 4u);
  EXPECT_EQ(limits("0::/a.slice").cores, ~0u);
}

TEST_F(ControlGroups, AContainerSeesItsOwnAsTheRoot) {
  write("fs/memory.max", "1073741824");
  write("fs/cpu.max", "50000 100000");
  for (const char *self : {"0::/", "0::/../elsewhere", "0::/gone"}) {
    EXPECT_EQ(limits(self).memory_bytes, 1073741824u) << self;
    EXPECT_EQ(limits(self).cores, 1u) << self;
  }
}

TEST_F(ControlGroups, VersionOneHasAFolderForEachController) {
  write("fs/memory/docker/1/memory.limit_in_bytes", "2147483648");
  write("fs/memory/memory.limit_in_bytes", "9223372036854771712");
  write("fs/cpu/docker/1/cpu.cfs_quota_us", "200000");
  write("fs/cpu/docker/1/cpu.cfs_period_us", "100000");
  write("fs/cpu/cpu.cfs_quota_us", "-1");
  write("fs/cpu/cpu.cfs_period_us", "100000");
  const GroupLimits found = limits("9:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/");
  EXPECT_EQ(found.memory_bytes, 2147483648u);
  EXPECT_EQ(found.cores, 2u);
}

TEST_F(ControlGroups, NothingIsNoLimit) {
  for (const char *self : {"", "0::", "rubbish", "0::relative", ":::/"}) {
    EXPECT_EQ(limits(self).memory_bytes, UINT64_MAX) << self;
    EXPECT_EQ(limits(self).cores, ~0u) << self;
  }
  write("fs/memory.max", "max");
  write("fs/cpu.max", "-5 0");
  EXPECT_EQ(limits("0::/").memory_bytes, UINT64_MAX);
  EXPECT_EQ(limits("0::/").cores, ~0u);
}

} // namespace
} // namespace llmrt
