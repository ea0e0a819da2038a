// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "cli/array_file.h"

namespace ingot::cli {

// A .npz file is a zip of .npy files (numpy.savez, numpy.savez_compressed); the zip is minizip's work.
std::vector<Array> read_npz(const std::filesystem::path& path);
bool write_npz(const std::filesystem::path& path, const std::vector<Array>& arrays);

}  // namespace ingot::cli
