// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "ingot/ingot.h"

namespace ingot::cli {

// CommandError if `path` cannot be created because its folder is missing or it is itself a folder; checked
// before any work is done for it.
void check_output_path(const std::string& path);

// A file that is written atomically, like engines. Throws CommandError.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  void write(std::span<const char> bytes);
  void finish();

 private:
  std::unique_ptr<ingot_file, decltype(&ingot_file_free)> file_{nullptr, &ingot_file_free};
};

}  // namespace ingot::cli
