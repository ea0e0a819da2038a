// SPDX-License-Identifier: Apache-2.0
#include "partition/engine_backends.h"

#include <gmock/gmock.h>

#include "support/error.h"

namespace ingot::core {
namespace {

std::string advice_without(std::string_view name) {
  try {
    find_backend({}, name);
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code, "INGOT-U003");
    return error.details().advice;
  }
  return "";
}

TEST(FindBackend, SaysWhatABuildWithoutTheCompilerForCpusNeeds) {
  EXPECT_THAT(advice_without("cpu"), ::testing::HasSubstr("LLVM"));
  EXPECT_EQ(advice_without("cuda"), "backends here: none");
}

}  // namespace
}  // namespace ingot::core
