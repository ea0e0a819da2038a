// SPDX-License-Identifier: Apache-2.0
#include "support/text.h"

#include <array>

#include <gtest/gtest.h>

namespace ingot::core {
namespace {

constexpr std::array<std::string_view, 4> kOptions = {"threads", "trust", "verify",
                                                      "require_full_compilation"};

TEST(NearestName, FindsSlipsOfTheFingers) {
  EXPECT_EQ(nearest_name("thread", kOptions), "threads");
  EXPECT_EQ(nearest_name("trsut", kOptions), "trust");
  EXPECT_EQ(nearest_name("turts", kOptions), "");  // two edits of five letters are too many
  EXPECT_EQ(nearest_name("trusst", kOptions), "trust");
  EXPECT_EQ(nearest_name("require_ful_compilaton", kOptions), "require_full_compilation");
  EXPECT_EQ(nearest_name("verify", kOptions), "verify");
}

TEST(NearestName, GivesNothingForWhatIsFarOff) {
  EXPECT_EQ(nearest_name("batch", kOptions), "");
  EXPECT_EQ(nearest_name("", kOptions), "");
  EXPECT_EQ(nearest_name("trust", {}), "");
}

TEST(FormatBytes, ChoosesTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1), "1 byte");
  EXPECT_EQ(format_bytes(312), "312 bytes");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536 * 1024), "1.5 MiB");
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

}  // namespace
}  // namespace ingot::core
