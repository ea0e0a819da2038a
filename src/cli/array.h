// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::cli {

struct Array {
  std::string name;   // "" in a .npy file
  int32_t dtype = 0;  // ingot_dtype
  std::vector<int64_t> shape;
  std::vector<char> data;  // dense row-major
};

size_t element_bits(int32_t dtype);
const char* dtype_name(int32_t dtype);  // "f32"

}  // namespace ingot::cli
