// SPDX-License-Identifier: Apache-2.0
// The files tests/passes/NAME.ir: cases for the pass NAME, split by lines "// -----". A case is the text of a
// graph, a line "// ===", and the text that the pass makes of it, or the word `unchanged`. Lines before the
// graph that start with "//" say what the case shows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ingot::core {

struct PassCase {
  std::string comment, before, after;  // after: "" where it is unchanged
};

std::vector<PassCase> read_pass_file(const std::filesystem::path& path);
void write_pass_file(const std::filesystem::path& path, const std::vector<PassCase>& cases);

}  // namespace ingot::core
