// SPDX-License-Identifier: Apache-2.0
// The fake device itself: it runs late, takes its arguments when they are enqueued, and does not hide what
// GPUs do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/fake/execute/execute.h"
#include "engine/engine_data.h"
#include "loops/interpreter.h"
#include "support/error.h"

namespace ingot::core::fake {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kDouble =
    "kernel double(x: f32[N]) -> y: f32[N] {\n"
    "  where N\n"
    "  parallel i < N\n"
    "  y[i] = map : (x[i] + x[i])\n"
    "}\n";
constexpr std::string_view kTake =
    "kernel take(x: f32[N], at: i64[]) -> y: f32[] {\n"
    "  where N\n"
    "  let k = at[] in 0..N - 1\n"
    "  y[] = map : x[k]\n"
    "}\n";

class FakeQueueTest : public ::testing::Test {
 protected:
  FakeQueueTest() {
    const auto bytes_of = [](std::string_view text) {
      const auto bytes = as_bytes(text);
      return std::vector(bytes.begin(), bytes.end());
    };
    data_.images = {{.kernel = "double", .target = "fake:interpreter", .code = bytes_of(kDouble)},
                    {.kernel = "take", .target = "fake:interpreter", .code = bytes_of(kTake)}};
    images_ = device_.load(data_, nullptr);
    queue_ = device_.open_queue();
    for (auto* const launch : {&double_, &take_}) launch->symbols = {Dim::symbol("N")};
    take_.image = 1;
  }

  std::shared_ptr<std::byte> on_device(const std::vector<float>& values) {
    const size_t bytes = values.size() * sizeof(float);
    std::shared_ptr<std::byte> memory = device_.memory()->allocate(bytes);
    device_.memory()->copy(memory.get(), reinterpret_cast<const std::byte*>(values.data()), bytes);
    return memory;
  }
  std::vector<float> on_host(const std::shared_ptr<std::byte>& memory, size_t count) {
    std::vector<float> values(count);
    device_.memory()->copy(reinterpret_cast<std::byte*>(values.data()), memory.get(), count * sizeof(float));
    return values;
  }

  std::optional<CallFailure> run(const Launch& launch, std::vector<void*> buffers, int64_t size) {
    const KernelCall call{&launch, buffers, &size, nullptr};
    const auto failure = queue_->run({.images = images_.get(), .calls = {&call, 1}});
    std::ranges::fill(buffers, nullptr);  // the caller's again
    size = -1;
    return failure;
  }

  std::string message_of_wait() {
    try {
      queue_->wait();
    } catch (const InternalError& error) {
      return error.details().message;
    }
    return "";
  }

  EngineData data_;
  FakeExecutor device_;
  std::unique_ptr<LoadedImages> images_;
  std::unique_ptr<Queue> queue_;
  Launch double_{.image = 0}, take_{};
};

TEST_F(FakeQueueTest, RunsInOrderAndAtTheLatestBeforeWaitReturns) {
  const auto x = on_device({1, 2, 3}), y = on_device({0, 0, 0}), z = on_device({0, 0, 0});
  for (int i = 0; i < 30; ++i) {
    EXPECT_FALSE(run(double_, {x.get(), y.get()}, 3));
    EXPECT_FALSE(run(double_, {y.get(), z.get()}, 3));
    EXPECT_FALSE(run(double_, {z.get(), x.get()}, 3));
  }
  EXPECT_FALSE(queue_->wait());
  EXPECT_EQ(device_.counts().calls, 90);
  EXPECT_EQ(on_host(x, 3)[2], 3 * std::ldexp(1.0F, 90));
}

TEST_F(FakeQueueTest, CapturesAtTheSecondUseAndReplays) {
  const auto x = on_device({1, 2, 3}), y = on_device({0, 0, 0});
  for (const int64_t size : {2, 2, 3, 2, 3}) {
    EXPECT_FALSE(run(double_, {x.get(), y.get()}, size));
    EXPECT_FALSE(queue_->wait());
  }
  EXPECT_EQ(device_.counts().graphs, 2);
  EXPECT_EQ(device_.counts().replays, 3);
  EXPECT_EQ(on_host(y, 3), (std::vector<float>{2, 4, 6}));
}

TEST_F(FakeQueueTest, TellsIndicesOutOfRangeLater) {
  const auto x = on_device({1, 2, 3}), y = on_device({0});
  std::shared_ptr<std::byte> at = device_.memory()->allocate(8);
  const int64_t outside = 3;
  device_.memory()->copy(at.get(), reinterpret_cast<const std::byte*>(&outside), 8);
  EXPECT_FALSE(run(take_, {x.get(), at.get(), y.get()}, 3));
  const auto failure = queue_->wait();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->launch, &take_);
  EXPECT_EQ(failure->status, static_cast<int64_t>(loops::KernelStatus::kIndexOutOfRange));
  EXPECT_EQ(on_host(y, 1), std::vector<float>{1});  // 0 was used instead
  EXPECT_FALSE(queue_->wait());                     // it was told once
  EXPECT_FALSE(run(double_, {x.get(), x.get()}, 3));
  EXPECT_FALSE(queue_->wait());
}

TEST_F(FakeQueueTest, BreaksWhenMemoryWasReleased) {
  std::shared_ptr<std::byte> x = on_device({1, 2, 3}), y = on_device({0, 0, 0});
  void* const address = x.get();
  x.reset();
  EXPECT_FALSE(run(double_, {address, y.get()}, 3));
  EXPECT_THAT(message_of_wait(), HasSubstr("memory that was released"));
  x = on_device({1, 2, 3});
  EXPECT_THROW(run(double_, {x.get(), y.get()}, 3), InternalError);  // every later call fails
  EXPECT_THROW(queue_->wait(), InternalError);
}

TEST_F(FakeQueueTest, BreaksWhenAKernelIsGivenWhatItCannotUse) {
  const auto x = on_device({1, 2, 3});
  std::vector<float> host(3);
  EXPECT_FALSE(run(double_, {x.get(), host.data()}, 3));
  EXPECT_THAT(message_of_wait(), HasSubstr("an address of the host"));
  queue_ = device_.open_queue();
  EXPECT_FALSE(run(double_, {x.get(), x.get()}, 4));
  EXPECT_THAT(message_of_wait(), HasSubstr("16 bytes at 0 of a block of 12"));
  queue_ = device_.open_queue();
  EXPECT_FALSE(run(double_, {x.get()}, 3));
  EXPECT_THAT(message_of_wait(), HasSubstr("other arguments than the kernel"));
}

TEST_F(FakeQueueTest, CopiesBetweenPlaces) {
  const auto x = on_device({1, 2, 3});
  std::vector<float> host = {7, 8, 9};
  const int64_t bytes = 12;
  void* there[] = {host.data(), x.get()};
  const KernelCall call{nullptr, there, nullptr, &bytes};
  EXPECT_FALSE(queue_->run({.images = images_.get(), .calls = {&call, 1}}));
  EXPECT_FALSE(queue_->wait());
  EXPECT_EQ(on_host(x, 3), host);
}

TEST_F(FakeQueueTest, RejectsImagesThatAreNoKernels) {
  for (Image& image : data_.images) {
    std::vector<std::byte> code = image.code;
    image.code.resize(code.size() / 2);
    EXPECT_THROW(device_.load(data_, nullptr), UserError);
    image.code = code;
  }
  EXPECT_EQ(device_.missing({.target = "fake:interpreter"}), "");
  EXPECT_EQ(device_.missing({.target = "fake:other"}), "other");
  EXPECT_TRUE(device_.is_valid(double_, 2));
  EXPECT_FALSE(device_.is_valid({.sizes = {1}}, 2));
}

}  // namespace
}  // namespace ingot::core::fake
