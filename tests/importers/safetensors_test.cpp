// SPDX-License-Identifier: Apache-2.0
#include "importers/safetensors/read_safetensors.h"

#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "support/error.h"

namespace ingot::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string safetensors(const std::string& header, const std::string& values) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + values;
}

std::vector<NamedTensor> read(const std::string& file) { return read_safetensors(as_bytes(file), {}, "w"); }

std::string refusal(const std::string& file) {
  try {
    read(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Safetensors, ReadsTensorsInPlace) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},"c":{"dtype":"I64","shape":[0,3],"data_offsets":[10,10]}})";
  const std::string file = safetensors(header, std::string(10, 'x'));
  const auto tensors = read(file);
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].value.view.dtype, DType::kF32);
  EXPECT_THAT(tensors[0].value.view.shape, ElementsAre(2));
  EXPECT_EQ(reinterpret_cast<const char*>(tensors[0].value.view.data), file.data() + 8 + header.size());
  EXPECT_EQ(tensors[1].value.view.dtype, DType::kBF16);
  EXPECT_THAT(tensors[2].value.view.shape, ElementsAre(0, 3));
}

TEST(Safetensors, RefusesDamageByName) {
  const auto one = [](const std::string& entry) { return safetensors("{\"a\":" + entry + "}", "12345678"); };
  EXPECT_THAT(refusal("short"), HasSubstr("INGOT-U530"));
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("within its header"));
  EXPECT_THAT(refusal(safetensors("{", "")), HasSubstr("INGOT-U502"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2]})")), HasSubstr("INGOT-U503"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})")), HasSubstr("two offsets"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})")), HasSubstr("outside"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})")), HasSubstr("outside"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})")),
              HasSubstr("more or fewer"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})")), HasSubstr("shape"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[9223372036854775807,8],"data_offsets":[0,8]})")),
              HasSubstr("shape"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F4","shape":[2],"data_offsets":[0,8]})")), HasSubstr("INGOT-N510"));
}

// Whatever byte is changed and wherever it ends: an error, or tensors inside of the file.
TEST(Safetensors, ReadsNothingOutsideOfTheFile) {
  const std::string whole =
      safetensors(R"({"a":{"dtype":"U8","shape":[2,4],"data_offsets":[0,8]}})", "12345678");
  const auto check = [](const std::string& file) {
    if (!refusal(file).empty()) return;
    for (const NamedTensor& tensor : read(file)) {
      const auto* first = reinterpret_cast<const char*>(tensor.value.view.data);
      const Tensor shape{nullptr, tensor.value.view.dtype, tensor.value.view.shape};
      EXPECT_LE(first + shape.bytes(), file.data() + file.size());
    }
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    check(whole.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      check(damaged);
    }
  }
}

}  // namespace
}  // namespace ingot::core
