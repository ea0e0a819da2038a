// SPDX-License-Identifier: Apache-2.0
#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

TEST(File, IsFinishedOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "file";
  ingot_file* made = nullptr;
  ASSERT_EQ(code_of(ingot_file_create(path.c_str(), &made)), "");
  const std::unique_ptr<ingot_file, decltype(&ingot_file_free)> file(made, &ingot_file_free);
  EXPECT_EQ(code_of(ingot_file_write(file.get(), "abc", 3)), "");
  EXPECT_EQ(code_of(ingot_file_finish(file.get())), "");
  EXPECT_EQ(code_of(ingot_file_write(file.get(), "d", 1)), "INGOT-U120");
  EXPECT_EQ(code_of(ingot_file_finish(file.get())), "INGOT-U120");
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
}

TEST(File, HasAName) {
  ingot_file* made = nullptr;
  EXPECT_EQ(code_of(ingot_file_create("", &made)), "INGOT-U120");
  const EngineOnDisk file(echo_engine());
  const auto engine = load(file.path());
  EXPECT_EQ(code_of(ingot_engine_save(engine.get(), "")), "INGOT-U120");
}

}  // namespace
}  // namespace ingot::core::testing
