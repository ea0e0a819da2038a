// SPDX-License-Identifier: Apache-2.0
// Arrays on disk: .npy and .npz (numpy's formats 1.0 to 3.0), .safetensors.
#pragma once

#include <string>
#include <vector>

#include "cli/array.h"

namespace ingot::cli {

// Arrays of a file, by its extension. CommandError names the file and what is wrong with it.
std::vector<Array> read_arrays(const std::string& path);

// CommandError, with the exit status of wrong usage, if a file of that name cannot hold so many arrays.
void check_array_path(const std::string& path, size_t count);
// One array as .npy; any number as .npz, under their names. Atomic.
void write_arrays(const std::string& path, const std::vector<Array>& arrays);

}  // namespace ingot::cli
