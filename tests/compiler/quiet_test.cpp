// SPDX-License-Identifier: Apache-2.0
#include "compiler/quiet.h"

#include <gtest/gtest.h>

#include <vector>

namespace ingot::core {
namespace {

TEST(Quiet, RepeatsWhatARunDisturbed) {
  int64_t begun = 5;
  std::vector<bool> asked;
  Quiet quiet([&](bool waits) {
    asked.push_back(waits);
    return begun;
  });
  int timings = 0;
  const int result = quiet.undisturbed([&] {
    if (++timings < 3) ++begun;
    return timings;
  });
  EXPECT_EQ(result, 3);
  EXPECT_EQ(asked, (std::vector<bool>{true, false, true, false, true, false}));
}

TEST(Quiet, TheCallerMayCancel) {
  Quiet quiet([](bool waits) { return waits ? int64_t{0} : int64_t{-1}; });
  EXPECT_THROW(quiet.undisturbed([] { return 0; }), UserError);
}

TEST(Quiet, WithoutACallbackNothingDisturbs) {
  Quiet quiet({});
  EXPECT_EQ(quiet.undisturbed([] { return 7; }), 7);
}

}  // namespace
}  // namespace ingot::core
