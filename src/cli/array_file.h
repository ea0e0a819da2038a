// SPDX-License-Identifier: Apache-2.0
// Arrays on disk: .npy and .npz (numpy's formats 1.0 to 3.0), .safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
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

// Arrays of a file, by its extension. CommandError names the file and what is wrong with it.
std::vector<Array> read_arrays(const std::filesystem::path& path);

// CommandError, with the exit status of wrong usage, if a file of that name cannot hold so many arrays.
void check_array_path(const std::filesystem::path& path, size_t count);
// One array as .npy; any number as .npz, under their names. Atomic.
void write_arrays(const std::filesystem::path& path, const std::vector<Array>& arrays);

}  // namespace ingot::cli
