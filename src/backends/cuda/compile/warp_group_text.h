// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ingot::core::cuda {

// Copies of boxes by tensor maps, and barriers that wait for them.
std::string_view bulk_copy_functions();
// What products of warp groups (wgmma, for sm_90a) need besides the product itself.
std::string_view group_product_functions();

// NAME(sums, a, b): sums[64 x columns] += a[64 x 16] b[16 x columns], where b's depth is innermost; or, with
// a in registers, its columns.
struct GroupProduct {
  std::string_view name;
  int columns = 64;
  bool bf16 = false;
  bool a_in_registers = false;
};
std::string group_product(const GroupProduct& product);

// All of these for a contraction.
std::string warp_group_functions(int columns, bool bf16);
// struct Parts, make_parts and copy_parts: parts of the depth that one thread copies and kReaders warps
// release.
std::string_view group_parts();
// multiply_tile of contractions whose operands have tensor maps, and what becomes of its sums: see the sketch
// in warp_group_text.cpp. `splits`: blocks of a cluster.
std::string warp_group_body(int splits);

}  // namespace ingot::core::cuda
