// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/error.h"

namespace ingot::core::fake {
namespace {

TEST(FakeMemory, FaultsWhenTheHostTouchesIt) {
  const auto memory = std::make_shared<FakeMemory>();
  const std::shared_ptr<std::byte> block = memory->allocate(64);
  volatile std::byte* const byte = block.get();
  EXPECT_DEATH(static_cast<void>(*byte), "");
  EXPECT_DEATH(*byte = std::byte{1}, "");
}

TEST(FakeMemory, IsCopiedThereAndBack) {
  const auto memory = std::make_shared<FakeMemory>();
  const std::shared_ptr<std::byte> a = memory->allocate(64), b = memory->allocate(64);
  std::vector<float> values(16, 1.5F), back(16);
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());
  memory->copy(a.get(), bytes, 64);
  memory->copy(b.get() + 4, a.get() + 4, 60);
  memory->copy(reinterpret_cast<std::byte*>(back.data()), b.get(), 64);
  EXPECT_TRUE(std::isnan(back[0]));  // fresh memory
  EXPECT_EQ(std::vector(back.begin() + 1, back.end()), std::vector<float>(15, 1.5F));
}

TEST(FakeMemory, NoticesWhatIsReleasedOrTooSmall) {
  const auto memory = std::make_shared<FakeMemory>();
  std::shared_ptr<std::byte> block = memory->allocate(64);
  std::byte* const address = block.get();
  std::byte host[64] = {};
  EXPECT_NE(memory->at(address + 63, 1), nullptr);
  EXPECT_THROW(memory->at(address + 63, 2), InternalError);
  EXPECT_THROW(memory->at(address + 64, 1), InternalError);
  EXPECT_THROW(memory->at(host, 1), InternalError);
  EXPECT_THROW(memory->copy(address, host, 65), InternalError);
  block.reset();
  EXPECT_THROW(memory->at(address, 1), InternalError);
  const std::shared_ptr<std::byte> next = memory->allocate(64);
  EXPECT_NE(next.get(), address);
  EXPECT_THROW(memory->copy(host, address, 1), InternalError);
}

TEST(FakeMemory, OutlivesItsOwner) {
  auto memory = std::make_shared<FakeMemory>();
  const std::shared_ptr<std::byte> block = memory->allocate(0);
  memory.reset();
  EXPECT_NE(block, nullptr);
}

}  // namespace
}  // namespace ingot::core::fake
