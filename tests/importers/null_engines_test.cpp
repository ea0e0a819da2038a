// SPDX-License-Identifier: Apache-2.0
// The backend without code builds whatever it is given, so that fuzzing reaches what follows.
#include <gtest/gtest.h>

#include "backends/null/compile/backend.h"
#include "compiler/compile.h"
#include "support/error.h"
#include "tests/importers/pt2_archives.h"

namespace ingot::core::pt2::test {
namespace {

TEST(NullEngines, OfEveryArchive) {
  const Backend* const backends[] = {&null::backend()};
  CompileOptions options;
  options.target.backend = "null";
  size_t built = 0;
  for (const std::string& name : golden_names()) {
    try {
      compile(read(read_bytes(golden_path(name))), options, backends);
      ++built;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << name << ": " << error.what();
    }
  }
  EXPECT_GT(built, golden_names().size() / 2);
}

}  // namespace
}  // namespace ingot::core::pt2::test
