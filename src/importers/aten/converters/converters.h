// SPDX-License-Identifier: Apache-2.0
// The table of ATen overloads: one row says how a call becomes nodes. Rows stand beside this file, by family.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

struct Row {
  std::string_view target;  // "aten.linear.default"; in-place overloads need none: they are their functional
                            // twin and a write
  void (*import)(Call& call);
  // Made of other calls, as torch can take it apart: where torch is, it may. Files are read without it.
  bool composed = false;
};

inline constexpr bool kComposed = true;

std::span<const Row> elementwise_rows();
std::span<const Row> special_rows();
std::span<const Row> binary_rows();
std::span<const Row> view_rows();
std::span<const Row> rearrange_rows();
std::span<const Row> slice_rows();
std::span<const Row> index_rows();
std::span<const Row> scatter_rows();
std::span<const Row> order_rows();
std::span<const Row> strided_rows();
std::span<const Row> reduction_rows();
std::span<const Row> statistics_rows();
std::span<const Row> contraction_rows();
std::span<const Row> product_rows();
std::span<const Row> einsum_rows();
std::span<const Row> normalization_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> encoder_rows();
std::span<const Row> bag_rows();
std::span<const Row> window_rows();
std::span<const Row> image_rows();
std::span<const Row> resample_rows();
std::span<const Row> loss_rows();
std::span<const Row> creation_rows();
std::span<const Row> symbol_rows();  // sym_size, _operator.*, assertions

const Row* find_row(std::string_view target);  // null if there is none
std::vector<const Row*> all_rows();

}  // namespace ingot::core::aten
