// SPDX-License-Identifier: Apache-2.0
#include "engine/sysfs_tree.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/identity.h"
#include "engine/text.h"
#include "engine/tree_files.h"

namespace vrb::engine {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

PortFacts example() {
  PortFacts facts;
  facts.gids[0] = {ipv4_gid(htonl(0xc0000202)), 3, "eth0"};
  facts.gids[1] = {ipv4_gid(htonl(0x7f000001)), 1, "lo"};
  facts.guid = 0x020000fffe000003;
  return facts;
}

class Tree : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/verbena-tree-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    parent_ = path;
  }
  void TearDown() override { fs::remove_all(parent_); }
  std::string base() const { return parent_ + "/verbena-" + std::to_string(geteuid()); }
  std::string device(const std::string& name) const {
    return read_file((root_ + "/sys/class/infiniband/verbena0/" + name).c_str());
  }

  std::string parent_;
  std::string root_;
};

TEST_F(Tree, HasWhatProgramsRead) {
  root_ = make_tree_below(parent_, example());
  ASSERT_THAT(root_, StartsWith(base() + "/"));
  const std::pair<const char*, const char*> expected[] = {
      {"node_type", "1: CA\n"},
      {"node_guid", "0200:00ff:fe00:0003\n"},
      {"sys_image_guid", "0200:00ff:fe00:0003\n"},
      {"device/vendor", "0x0000\n"},
      {"device/device", "0x0720\n"},
      {"device/numa_node", "-1\n"},
      {"ports/1/state", "4: ACTIVE\n"},
      {"ports/1/phys_state", "5: LinkUp\n"},
      {"ports/1/rate", "200 Gb/sec (8X EDR)\n"},
      {"ports/1/link_layer", "Ethernet\n"},
      {"ports/1/lid", "0x0\n"},
      {"ports/1/cap_mask", "0x04010000\n"},
      {"ports/1/pkeys/0", "0xffff\n"},
      {"ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:c000:0202\n"},
      {"ports/1/gids/31", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
      {"ports/1/gid_attrs/types/1", "RoCE v2\n"},
      {"ports/1/gid_attrs/ndevs/0", "eth0\n"},
      {"ports/1/gid_attrs/ndevs/2", ""},
      {"ports/1/counters/port_xmit_data", "0\n"},
      {"ports/1/hw_counters/out_of_sequence", "0\n"},
  };
  for (const auto& [name, content] : expected) EXPECT_EQ(device(name), content) << name;
  EXPECT_EQ(device("fw_ver"), std::string(kVersion) + "\n");
  EXPECT_EQ(fs::read_symlink(root_ + "/sys/class/infiniband/verbena0/device/net/eth0"),
            "/sys/class/net/eth0");
  const std::string uverbs = root_ + "/sys/class/infiniband_verbs/uverbs240/";
  EXPECT_EQ(read_file((uverbs + "ibdev").c_str()), "verbena0\n");
  EXPECT_EQ(read_file((uverbs + "device/device").c_str()), "0x0720\n");
  EXPECT_TRUE(
      fs::exists(root_ + "/sys/class/infiniband/verbena0/device/infiniband/verbena0/fw_ver"));
  EXPECT_TRUE(
      fs::exists(root_ + "/sys/class/infiniband/verbena0/device/infiniband_verbs/uverbs240/ibdev"));
}

TEST_F(Tree, TheNodeIsACharacterDevice) {
  root_ = make_tree_below(parent_, example());
  for (const char* name : {"uverbs240", "by-ibdev/uverbs-verbena0"}) {
    const std::string node = root_ + "/dev/infiniband/" + name;
    struct stat st {};
    ASSERT_EQ(stat(node.c_str(), &st), 0) << name;
    EXPECT_TRUE(S_ISCHR(st.st_mode));
    EXPECT_EQ(access(node.c_str(), R_OK | W_OK), 0);
  }
}

TEST_F(Tree, BelongsToTheUserAlone) {
  root_ = make_tree_below(parent_, example());
  for (const std::string& dir : {base(), root_}) {
    struct stat st {};
    ASSERT_EQ(stat(dir.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0700U) << dir;
  }
}

TEST_F(Tree, IsSharedByEqualFactsAndNotByOthers) {
  root_ = make_tree_below(parent_, example());
  EXPECT_EQ(make_tree_below(parent_, example()), root_);
  PortFacts other = example();
  other.gids[1] = {};
  const std::string second = make_tree_below(parent_, other);
  EXPECT_NE(second, "");
  EXPECT_NE(second, root_);
}

TEST_F(Tree, IsCompletedWhenFilesWereCleanedAway) {
  root_ = make_tree_below(parent_, example());
  fs::remove_all(root_ + "/sys/class/infiniband/verbena0/ports");
  fs::remove(root_ + "/dev/infiniband/uverbs240");
  EXPECT_EQ(make_tree_below(parent_, example()), root_);
  EXPECT_EQ(device("ports/1/state"), "4: ACTIVE\n");
  EXPECT_TRUE(fs::is_symlink(root_ + "/dev/infiniband/uverbs240"));
}

TEST_F(Tree, RefusesALink) {
  fs::create_directory(parent_ + "/elsewhere");
  fs::permissions(parent_ + "/elsewhere", fs::perms::owner_all);
  fs::create_symlink("elsewhere", base());
  EXPECT_EQ(make_tree_below(parent_, example()), "");
  EXPECT_EQ(errno, EPERM);
  EXPECT_TRUE(fs::is_empty(parent_ + "/elsewhere"));
}

TEST_F(Tree, RefusesADirectoryOpenToOthers) {
  fs::create_directory(base());
  fs::permissions(base(), fs::perms::all);
  EXPECT_EQ(make_tree_below(parent_, example()), "");
  EXPECT_EQ(errno, EPERM);
}

TEST_F(Tree, RefusesSomebodyElsesDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directory(base());
  fs::permissions(base(), fs::perms::owner_all);
  ASSERT_EQ(chown(base().c_str(), 1001, 1001), 0);
  EXPECT_EQ(make_tree_below(parent_, example()), "");
  EXPECT_EQ(errno, EPERM);
}

TEST_F(Tree, SaysWhyItCannotBeMade) {
  EXPECT_EQ(make_tree_below(parent_ + "/absent", example()), "");
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(Tree, ManyMakersAtOnceAllFindItWhole) {
  std::vector<std::thread> makers;
  std::vector<std::string> roots(8);
  for (std::string& root : roots) {
    makers.emplace_back([&] {
      root = make_tree_below(parent_, example());
      EXPECT_EQ(read_file((root + "/sys/class/infiniband_verbs/abi_version").c_str()), "6\n");
    });
  }
  for (std::thread& maker : makers) maker.join();
  for (const std::string& root : roots) EXPECT_EQ(root, roots[0]);
  for (const auto& entry : fs::recursive_directory_iterator(roots[0])) {
    EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::HasSubstr(".new-")));
  }
}

TEST_F(Tree, FallsBackWhenTheRuntimeDirectoryIsUseless) {
  setenv("XDG_RUNTIME_DIR", (parent_ + "/absent").c_str(), 1);
  root_ = make_tree(example());
  ASSERT_THAT(root_, StartsWith("/tmp/verbena-"));
  fs::remove_all(root_);
  setenv("XDG_RUNTIME_DIR", parent_.c_str(), 1);
  EXPECT_THAT(make_tree(example()), StartsWith(base() + "/"));
  unsetenv("XDG_RUNTIME_DIR");
}

TEST(TreeFiles, CpuMask) {
  EXPECT_EQ(cpu_mask("0"), "00000001");
  EXPECT_EQ(cpu_mask("0-3,8"), "0000010f");
  EXPECT_EQ(cpu_mask("0-31"), "ffffffff");
  EXPECT_EQ(cpu_mask("31-32,64"), "00000001,00000001,80000000");
  EXPECT_EQ(cpu_mask(""), "00000000");
}

}  // namespace
}  // namespace vrb::engine
