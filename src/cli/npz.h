// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/array.h"
#include "cli/output_file.h"

namespace ingot::cli {

// A .npz file is a zip archive of .npy files (numpy.savez, numpy.savez_compressed), read by minizip.
std::vector<Array> read_npz(const std::string& path);
// Stored, not compressed, as numpy.savez does; written sequentially, so that pipes work too.
void write_npz(OutputFile& file, const std::vector<Array>& arrays);

}  // namespace ingot::cli
