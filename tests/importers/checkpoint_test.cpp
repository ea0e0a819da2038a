// SPDX-License-Identifier: Apache-2.0
#include "importers/safetensors/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/error.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core {
namespace {

// A folder with files of one tensor each, and an index.
class CheckpointTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
    return folder_.path() / name;
  }
  std::filesystem::path write_tensor(const std::string& file, const std::string& tensor) const {
    const std::string header =
        "{\"" + tensor + "\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}}";
    std::string length(8, '\0');
    length[0] = static_cast<char>(header.size());
    return write(file, length + header + "x");
  }
  std::filesystem::path write_index(const std::string& map) const {
    return write("model.safetensors.index.json",
                 "{\"metadata\": {\"total_size\": [1, {}]}, \"weight_map\": " + map + "}");
  }
  static std::string code_of(const std::filesystem::path& index) {
    try {
      read_checkpoint(index);
      return "";
    } catch (const UserError& error) {
      return std::string(error.details().code);
    }
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(CheckpointTest, IsAllFilesOfItsIndexOnce) {
  write_tensor("b.safetensors", "second");
  write_tensor("parts/a.safetensors", "first");
  const auto index =
      write_index(R"({"x": "parts/a.safetensors", "second": "b.safetensors", "y": "b.safetensors"})");
  const auto tensors = read_checkpoint(index);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "second");
  EXPECT_EQ(tensors[1].name, "first");
  EXPECT_EQ(tensors[1].value.view.data[0], std::byte{'x'});
}

TEST_F(CheckpointTest, IsTheFileItselfWithoutAnIndex) {
  const auto file = write_tensor("model.safetensors", "w");
  EXPECT_EQ(checkpoint_files(file), std::vector{file});
  EXPECT_EQ(read_checkpoint(file).size(), 1u);
}

TEST_F(CheckpointTest, RejectsFilesOutsideOfItsFolder) {
  write_tensor("outside.safetensors", "w");
  for (const char* name : {"../outside.safetensors", "a/../../outside.safetensors", "/etc/hostname", "", ".",
                           "..", "./..", "a\\u0000b"}) {
    const std::string map = std::string("{\"w\": \"") + name + "\"}";
    EXPECT_EQ(code_of(write("inner/index.json", "{\"weight_map\": " + map + "}")), "INGOT-U530") << name;
  }
}

TEST_F(CheckpointTest, RejectsWhatIsNoIndex) {
  EXPECT_EQ(code_of(write("index.json", "")), "INGOT-U502");
  EXPECT_EQ(code_of(write("index.json", "{\"weight_map\"")), "INGOT-U502");
  EXPECT_EQ(code_of(write("index.json", "{}")), "INGOT-U503");
  EXPECT_EQ(code_of(write("index.json", "[]")), "INGOT-U503");
  EXPECT_EQ(code_of(write("index.json", R"({"weight_map": ["a"]})")), "INGOT-U503");
  EXPECT_EQ(code_of(write("index.json", R"({"weight_map": {"w": {}}})")), "INGOT-U503");
}

TEST_F(CheckpointTest, RejectsTwoTensorsOfOneName) {
  write_tensor("a.safetensors", "w");
  write_tensor("b.safetensors", "w");
  EXPECT_EQ(code_of(write_index(R"({"w": "a.safetensors", "v": "b.safetensors"})")), "INGOT-U326");
}

TEST_F(CheckpointTest, RejectsDamagedParts) {
  write("a.safetensors", "short");
  EXPECT_EQ(code_of(write_index(R"({"w": "a.safetensors"})")), "INGOT-U530");
}

}  // namespace
}  // namespace ingot::core
