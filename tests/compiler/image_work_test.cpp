// SPDX-License-Identifier: Apache-2.0
#include "compiler/image_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include <fmt/core.h>

namespace ingot::core {
namespace {

Image image_called(std::string name) {
  Image image;
  image.kernel = std::move(name);
  image.code.resize(16);
  return image;
}

void no_report(size_t, size_t) {}

void add_many(ImageWork& work, int count, std::atomic<int>& made) {
  for (int i = 0; i < count; ++i) {
    work.add(fmt::format("kernel {}", i), [i, &made] {
      ++made;
      return image_called(fmt::format("image {}", i));
    });
  }
}

TEST(ImageWork, ImagesAreInTheOrderInWhichTheyWereAdded) {
  for (const int threads : {0, 1, 2, 7}) {
    std::atomic<int> made = 0;
    ImageWork work({}, threads);
    add_many(work, 100, made);
    const CompiledImages all = work.finish(no_report);
    EXPECT_EQ(made, 100);
    ASSERT_EQ(all.images.size(), 100u);
    for (size_t i = 0; i < all.images.size(); ++i) {
      EXPECT_EQ(all.images[i].kernel, fmt::format("image {}", i));
      EXPECT_EQ(all.images[i].key, make_key(EntryKind::kKernel, fmt::format("kernel {}", i)).digest);
      EXPECT_EQ(all.is_new[i], 1);
    }
  }
}

TEST(ImageWork, KernelsAreCompiledWhileTheCallerGoesOn) {
  std::promise<void> compiled;
  ImageWork work({}, 2);
  work.add("kernel", [&] {
    compiled.set_value();
    return image_called("image");
  });
  compiled.get_future().wait();  // forever, if only `finish` compiled
  EXPECT_EQ(work.finish(no_report).images.size(), 1u);
}

TEST(ImageWork, OneThreadIsTheCallers) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> elsewhere = 0, made = 0;
  ImageWork work({}, 1);
  for (int i = 0; i < 5; ++i) {
    work.add(fmt::format("{}", i), [&] {
      ++made;
      elsewhere += std::this_thread::get_id() == caller ? 0 : 1;
      return image_called("image");
    });
  }
  EXPECT_EQ(made, 0);
  std::vector<size_t> reported;
  work.finish([&](size_t done, size_t total) {
    EXPECT_EQ(total, 5u);
    reported.push_back(done);
  });
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(reported, (std::vector<size_t>{1, 2, 3, 4, 5}));
}

TEST(ImageWork, NothingIsFinishedWithoutKernels) {
  ImageWork work({}, 4);
  EXPECT_TRUE(work.finish(no_report).images.empty());
}

TEST(ImageWork, AFailureReachesTheCallerWhicheverThreadMetIt) {
  for (const int threads : {1, 2, 4}) {
    std::atomic<int> made = 0;
    ImageWork work({}, threads);
    add_many(work, 10, made);
    work.add("broken", []() -> Image { throw std::runtime_error("no such instruction"); });
    add_many(work, 10, made);
    EXPECT_THROW(work.finish(no_report), std::runtime_error);
  }
}

TEST(ImageWork, ACancelledBuildDropsWhatHasNotBegun) {
  std::atomic<int> made = 0;
  {
    ImageWork work({}, 1);
    add_many(work, 10, made);
    EXPECT_THROW(work.finish([](size_t, size_t) { throw std::runtime_error("cancelled"); }),
                 std::runtime_error);
  }
  EXPECT_EQ(made, 1);
  {
    ImageWork work({}, 1);
    add_many(work, 10, made);
  }
  EXPECT_EQ(made, 1);
}

TEST(ImageWork, ACacheIsAskedFirst) {
  Cache cache(size_t{1} << 20);
  std::atomic<int> made = 0;
  for (const uint8_t is_new : std::initializer_list<uint8_t>{1, 0}) {
    ImageWork work({&cache, {}}, 3);
    add_many(work, 20, made);
    const CompiledImages all = work.finish(no_report);
    EXPECT_EQ(made, 20);
    EXPECT_EQ(all.is_new, std::vector<uint8_t>(20, is_new));
    for (size_t i = 0; i < 20; ++i) EXPECT_EQ(all.images[i].kernel, fmt::format("image {}", i));
  }
}

}  // namespace
}  // namespace ingot::core
