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
#include "cache/folder_state.h"
#include "tests/cache/folders.h"
#include "tests/support/child.h"

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

TEST_F(LeaseTest, ChildrenOfAKilledMakerHaveNoShareInIt) {
  std::filesystem::create_directories(root_);
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t maker = ::fork();
  if (maker == 0) {
    const Lease lease(root_, Digest{}, 0ms, {});
    const FolderState state(root_, kSystemFiles);
    const pid_t child = ::fork();
    if (child != 0 && ::write(ready[1], &child, sizeof(child)) != sizeof(child)) ::_exit(1);
    ::pause();
  }
  pid_t child = 0;
  ASSERT_EQ(::read(ready[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ::kill(maker, SIGKILL);
  ::waitpid(maker, nullptr, 0);
  EXPECT_EQ(::kill(child, 0), 0);
  EXPECT_TRUE(FolderState(root_, kSystemFiles).is_locked());
  EXPECT_FALSE(Lease(root_, Digest{}, 0ms, {}).has_waited());
  ::kill(child, SIGKILL);
  for (const int file : ready) ::close(file);
}

// A child that was forked inside of the build, in a callback, and leaves it by an exception.
TEST_F(LeaseTest, AChildThatEndsTheLeaseLeavesItToTheMaker) {
  std::filesystem::create_directories(root_);
  std::optional<Lease> lease(std::in_place, root_, Digest{}, 0ms, std::function<void()>());
  std::optional<FolderState> state(std::in_place, root_, kSystemFiles);
  EXPECT_EQ(testing::in_child([&] {
              const bool is_shared = state->is_locked();
              lease.reset();
              state.reset();
              return !is_shared;
            }),
            "");
  EXPECT_FALSE(std::filesystem::is_empty(root_ / "leases"));
  EXPECT_TRUE(Lease(root_, Digest{}, 20ms, {}).has_waited());
  EXPECT_FALSE(FolderState(root_, kSystemFiles).is_locked());
  lease.reset();
  state.reset();
  EXPECT_FALSE(Lease(root_, Digest{}, 0ms, {}).has_waited());
  EXPECT_TRUE(FolderState(root_, kSystemFiles).is_locked());
}

// One that was forked before, and has copies of nothing.
TEST_F(LeaseTest, ALeaseEndsWhileAChildOfItsProcessLives) {
  std::filesystem::create_directories(root_);
  std::optional<Lease> lease(std::in_place, root_, Digest{}, 0ms, std::function<void()>());
  const pid_t child = ::fork();
  if (child == 0) ::pause();
  lease.reset();
  EXPECT_FALSE(Lease(root_, Digest{}, 0ms, {}).has_waited());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
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
