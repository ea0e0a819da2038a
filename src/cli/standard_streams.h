// SPDX-License-Identifier: Apache-2.0
// Standard output holds results, so a command whose results are lost has failed; standard error holds notes,
// so a command whose notes are lost has not.
#pragma once

#include <string>

namespace ingot::cli {

// Writes to stderr, and ignores failures.
void print_note(const std::string& text);

// Writes what stdout has buffered. CommandError if that fails, or an earlier write to it failed.
void finish_output();

}  // namespace ingot::cli
