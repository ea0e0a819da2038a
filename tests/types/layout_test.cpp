// SPDX-License-Identifier: Apache-2.0
#include "types/layout.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

#include "support/error.h"
#include "types/layout_rules.h"
#include "types/tensor_type.h"

namespace ingot::core {
namespace {

constexpr std::array kNhwc = {0, 2, 3, 1};
constexpr std::array kNchw = {0, 1, 2, 3};

TEST(Layout, PermutationsHaveNoBlocks) {
  EXPECT_TRUE(Layout().is_permutation());
  EXPECT_TRUE(Layout::permutation(kNhwc).is_permutation());
  EXPECT_FALSE(Layout::blocked(kNchw, 1, 16).is_permutation());
  EXPECT_TRUE(Layout::permutation(kNchw).is_row_major());
}

TEST(Layout, TextReadsBack) {
  EXPECT_EQ(to_string(Layout()), "");
  EXPECT_EQ(to_string(Layout::permutation(kNhwc)), "{0, 2, 3, 1}");
  const Layout blocked = Layout::blocked(kNhwc, 1, 16);
  EXPECT_EQ(to_string(blocked), "{0, 2, 3, 1/16, 1%16}");
  EXPECT_EQ(parse_layout("", 4), Layout());
  EXPECT_EQ(parse_layout("{0, 2, 3, 1/16, 1%16}", 4), blocked);
  EXPECT_EQ(parse_layout("{0,1/8,1/2%4,1%2}", 2), (Layout{{{0}, {1, 8, 0}, {1, 2, 4}, {1, 1, 2}}}));
}

TEST(Layout, MalformedTextIsRefused) {
  for (const char* text : {"{", "{}", "0, 1", "{0, 4}", "{0, 1/0}", "{0 1}", "{0, 1} ", "{-1}", "{0, 1%}",
                           "{99999999999999999999}"}) {
    EXPECT_THROW(parse_layout(text, 4), UserError) << text;
  }
}

TEST(Layout, StorageShapeRoundsBlocksUp) {
  const Shape shape = {Dim::symbol("B"), 20, 5, 7};
  EXPECT_EQ(to_string(storage_shape(Layout(), shape)), "[B,20,5,7]");
  EXPECT_EQ(to_string(storage_shape(Layout::permutation(kNhwc), shape)), "[B,5,7,20]");
  EXPECT_EQ(to_string(storage_shape(Layout::blocked(kNchw, 1, 16), shape)), "[B,2,5,7,16]");
  EXPECT_EQ(storage_elements(Layout::blocked(kNchw, 1, 16), shape), Dim::symbol("B") * 1120);
}

TEST(Layout, OffsetsAreSymbolic) {
  const Shape shape = {Dim::symbol("B"), 32, 4, 4};
  const Shape index = {Dim::symbol("b"), Dim::symbol("c"), Dim::symbol("h"), Dim::symbol("w")};
  EXPECT_EQ(storage_offset(Layout(), shape, index), parse_dim("512*b + 16*c + 4*h + w"));
  EXPECT_EQ(storage_offset(Layout::permutation(kNhwc), shape, index), parse_dim("512*b + c + 128*h + 32*w"));
  EXPECT_EQ(storage_offset(Layout::blocked(kNchw, 1, 16), shape, index),
            parse_dim("512*b + 256*floordiv(c, 16) + 64*h + 16*w + mod(c, 16)"));
}

TEST(Layout, BijectionsNameEveryDimWholly) {
  const auto is = [](const char* text, size_t rank) { return is_bijection(parse_layout(text, rank), rank); };
  EXPECT_TRUE(is("", 3));
  EXPECT_TRUE(is("{0, 2, 3, 1/16, 1%16}", 4));
  EXPECT_TRUE(is("{0, 1/8, 1/2%4, 1%2}", 2));
  EXPECT_TRUE(is("{0, 1, 1%1}", 2)) << "blocks of one";
  for (const char* text : {"{0}", "{0, 0}", "{0, 1, 1}", "{0, 1/16}", "{0, 1%16}", "{0, 1/16, 1%8}",
                           "{0, 1/8, 1/4%2, 1%2}", "{0, 1/8%2, 1%8}", "{0, 1, 1%16}"}) {
    EXPECT_FALSE(is(text, 2)) << text;
  }
  EXPECT_FALSE(is_bijection(Layout{{{0}, {2}}}, 2));
  EXPECT_FALSE(is_bijection(Layout{{{0}, {1, 0, 0}}}, 2));
}

TEST(Layout, EveryIndexHasAPlaceOfItsOwn) {
  const Shape shape = {2, 10, 3};
  const std::array order = {0, 2, 1};
  for (const Layout& layout : {Layout(), Layout::permutation(order), Layout::blocked(order, 1, 4),
                               Layout{{{2}, {1, 4, 0}, {0}, {1, 2, 2}, {1, 1, 2}}}}) {
    const int64_t elements = *storage_elements(layout, shape).constant();
    std::set<int64_t> offsets;
    for (int64_t i = 0; i < 2 * 10 * 3; ++i) {
      const Shape index = {i / 30, i / 3 % 10, i % 3};
      const int64_t offset = *storage_offset(layout, shape, index).constant();
      EXPECT_GE(offset, 0);
      EXPECT_LT(offset, elements);
      EXPECT_TRUE(offsets.insert(offset).second) << to_string(layout) << " " << i;
    }
  }
}

TEST(TensorType, TextNamesTheLayoutOnlyWhereItIsNotRowMajor) {
  EXPECT_EQ(to_string(TensorType{DType::kF32, {Dim::symbol("B"), 128, 384}, {}}), "f32[B,128,384]");
  EXPECT_EQ(to_string(TensorType{DType::kF32, {1, 64, 56, 56}, Layout::permutation(kNhwc)}),
            "f32[1,64,56,56]{0, 2, 3, 1}");
  EXPECT_EQ(to_string(TensorType{DType::kI64, {}, {}}), "i64[]");
}

TEST(TensorType, CountsElementsAndBytes) {
  const TensorType blocked{DType::kBF16, {1, 20, 5, 7}, Layout::blocked(kNchw, 1, 16)};
  EXPECT_EQ(element_count(blocked), Dim(700));
  EXPECT_EQ(storage_bytes(blocked), Dim(2 * 1120));
  EXPECT_EQ(storage_bytes({DType::kI4, {3, 5}, {}}), Dim(9));  // rows of three bytes
  EXPECT_EQ(storage_bytes({DType::kI4, {3, Dim::symbol("S")}, {}}), parse_dim("3*floordiv(S + 1, 2)"));
  EXPECT_EQ(storage_bytes({DType::kF64, {}, {}}), Dim(8));
  EXPECT_EQ(storage_bytes({DType::kF32, {Dim::symbol("S"), 0}, {}}), Dim(0));
}

}  // namespace
}  // namespace ingot::core
