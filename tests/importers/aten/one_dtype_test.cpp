// SPDX-License-Identifier: Apache-2.0
// Programs of mixed dtypes that torch traces and whose kernels reject them: a file may hold them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error.h"
#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

using testing::HasSubstr;

std::string refusal_of(const ProgramWriter& writer) {
  try {
    import_program(writer.program);
  } catch (const UnsupportedError& error) {
    EXPECT_EQ(error.details().code, "INGOT-N520");
    return error.details().message;
  }
  return "";
}

std::string norm_of(DType x, DType weight, DType bias) {
  ProgramWriter writer;
  const Argument arguments[] = {{writer.input("x", {2, 3}, x)},
                                {list({3})},
                                {writer.input("w", {3}, weight)},
                                {writer.input("b", {3}, bias)}};
  writer.output(
      writer.call("aten.layer_norm.default", {std::begin(arguments), std::end(arguments)}, {2, 3}, x));
  return refusal_of(writer);
}

std::string addition_of(const std::string& target, DType x, DType source) {
  ProgramWriter writer;
  const ValueId self = writer.input("x", {2, 3}, x), index = writer.input("i", {2}, DType::kI64);
  const ValueId more = writer.input("y", {2, 3}, source);
  writer.output(writer.call(target, {{self}, {int64_t{0}}, {index}, {more}}, {2, 3}, x));
  return refusal_of(writer);
}

TEST(OneDType, NormsTakeTheirOwn) {
  constexpr DType kF16 = DType::kF16, kBF16 = DType::kBF16, kF32 = DType::kF32, kF64 = DType::kF64;
  for (const DType dtype : {kF16, kBF16, kF32, kF64}) EXPECT_EQ(norm_of(dtype, dtype, dtype), "");
  EXPECT_EQ(norm_of(kF16, kF32, kF32), "");
  EXPECT_EQ(norm_of(kBF16, kF32, kF32), "");
  EXPECT_THAT(norm_of(kF32, kF64, kF32), HasSubstr("input is f32 and weight is f64"));
  EXPECT_THAT(norm_of(kF32, kF32, kF64), HasSubstr("input is f32 and bias is f64"));
  EXPECT_THAT(norm_of(kF64, kF32, kF32), HasSubstr("input is f64 and weight is f32"));
  EXPECT_THAT(norm_of(kF32, kF16, kF16), HasSubstr("input is f32 and weight is f16"));
  EXPECT_THAT(norm_of(kF16, kF32, kF16), HasSubstr("weight is f32 and bias is f16"));
  EXPECT_THAT(norm_of(kF16, kF16, kF32), HasSubstr("input is f16 and bias is f32"));
}

TEST(OneDType, IndexedWritesTakeTheirOwn) {
  for (const std::string target : {"aten.index_add.default", "aten.index_copy.default"}) {
    EXPECT_EQ(addition_of(target, DType::kF64, DType::kF64), "");
    EXPECT_THAT(addition_of(target, DType::kF32, DType::kF64), HasSubstr("self is f32 and source is f64"));
    EXPECT_THAT(addition_of(target, DType::kI32, DType::kI64), HasSubstr("self is i32 and source is i64"));
  }
}

}  // namespace
}  // namespace ingot::core::aten::test
