// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <fmt/core.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/system.h"

namespace ingot::cli {

void check_output_path(const std::string& path) {
  const std::filesystem::path file = to_path(path);
  const std::string folder = file.has_parent_path() ? to_text(file.parent_path()) : ".";
  if (!is_folder(folder))
    throw CommandError(fmt::format("cannot write '{}': there is no folder '{}'", path, folder));
  if (is_folder(path)) throw CommandError(fmt::format("cannot write '{}': it is a folder", path));
}

OutputFile::OutputFile(const std::string& path) {
  ingot_file* file = nullptr;
  check(ingot_file_create(path.c_str(), &file));
  file_.reset(file);
}

void OutputFile::write(std::span<const char> bytes) {
  check(ingot_file_write(file_.get(), bytes.data(), bytes.size()));
}

void OutputFile::finish() { check(ingot_file_finish(file_.get())); }

}  // namespace ingot::cli
