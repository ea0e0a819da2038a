// SPDX-License-Identifier: Apache-2.0
#include "compiler/image_entry.h"

#include <gtest/gtest.h>

namespace ingot::core {
namespace {

TEST(ImageEntry, KeepsAllButTheKey) {
  const Image image{.kernel = "softmax",
                    .target = "cpu:x86-64-v3",
                    .code = std::vector<std::byte>(300, std::byte{0xc3}),
                    .alignment = 4096};
  const std::optional<Image> read = decode_image(encode_image(image));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kernel, image.kernel);
  EXPECT_EQ(read->target, image.target);
  EXPECT_EQ(read->code, image.code);
  EXPECT_EQ(read->alignment, image.alignment);
}

TEST(ImageEntry, RefusesEveryOtherLength) {
  std::vector<std::byte> bytes = encode_image({.kernel = "k", .target = "t", .code = {std::byte{1}}});
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_image(Bytes(bytes).first(length))) << length;
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_image(bytes));
}

}  // namespace
}  // namespace ingot::core
