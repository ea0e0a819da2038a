// SPDX-License-Identifier: Apache-2.0
// Of processes that need one entry at once, one makes it.
#include "cache/lease.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <thread>

#include "cache/disk_store.h"
#include "tests/cache/folders.h"

namespace ingot::core {
namespace {

using namespace std::chrono_literals;
using testing::bytes_of;
using testing::kernel;
using testing::TemporaryFolder;

constexpr auto kLong = 60s;

class LeaseTest : public ::testing::Test {
 protected:
  // What a build does: looks, takes the lease, looks again, makes. Writes a line for each entry that it made.
  void build(std::chrono::milliseconds work) const {
    DiskStore store({.folder = root_, .create = true, .limit = 1 << 20, .report = {}, .seconds = {}});
    const CacheKey key = kernel("engine");
    if (store.find(key) != nullptr) return;
    const Lease lease(root_, key.digest, kLong, {});
    if (lease.has_waited() && store.find(key) != nullptr) return;
    std::ofstream(folder_.path() / "made", std::ios::app) << ::getpid() << "\n";
    std::this_thread::sleep_for(work);
    store.put(key, bytes_of(10));
  }

  pid_t start(std::chrono::milliseconds work) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    build(work);
    ::_exit(0);
  }

  std::vector<pid_t> makers() const {
    std::ifstream file(folder_.path() / "made");
    std::vector<pid_t> makers;
    for (pid_t maker; file >> maker;) makers.push_back(maker);
    return makers;
  }

  TemporaryFolder folder_;
  const std::filesystem::path root_ = folder_.path() / "cache";
};

TEST_F(LeaseTest, OneOfEightProcessesMakesTheEntry) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) children.push_back(start(300ms));
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  EXPECT_EQ(makers().size(), 1u);
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "leases"));
}

TEST_F(LeaseTest, AnotherTakesOverFromAKilledMaker) {
  const pid_t first = start(kLong);
  while (makers().empty()) std::this_thread::sleep_for(5ms);
  std::vector<pid_t> others;
  for (int i = 0; i < 4; ++i) others.push_back(start(100ms));
  std::this_thread::sleep_for(50ms);
  ::kill(first, SIGKILL);
  ::waitpid(first, nullptr, 0);
  for (const pid_t child : others) ::waitpid(child, nullptr, 0);
  EXPECT_EQ(makers().size(), 2u);
}

TEST_F(LeaseTest, PatienceEnds) {
  std::filesystem::create_directories(root_);
  const Digest digest{};
  const Lease first(root_, digest, 0ms, {});
  EXPECT_FALSE(first.has_waited());
  int calls = 0;
  const Lease second(root_, digest, 50ms, [&] { ++calls; });
  EXPECT_TRUE(second.has_waited());
  EXPECT_GT(calls, 0);
  EXPECT_THROW(Lease(root_, digest, kLong, [] { throw std::runtime_error("cancelled"); }),
               std::runtime_error);
}

TEST_F(LeaseTest, WithoutAFolderNobodyWaits) {
  const Lease lease(folder_.path() / "none" / "none", Digest{}, kLong, {});
  EXPECT_FALSE(lease.has_waited());
}

}  // namespace
}  // namespace ingot::core
