// SPDX-License-Identifier: Apache-2.0
#include "tests/api/fixtures.h"

extern "C" float run_from_c(const char* path);

namespace ingot::core::testing {
namespace {

TEST(PlainC, RunsAnEngine) {
  const EngineOnDisk file(echo_engine());
  EXPECT_EQ(run_from_c(file.path().c_str()), 4);
  EXPECT_EQ(run_from_c(file.path("missing").c_str()), -1);
}

}  // namespace
}  // namespace ingot::core::testing
