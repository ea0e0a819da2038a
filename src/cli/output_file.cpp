// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cli/commands.h"

namespace ingot::cli {

void check_output_path(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, ignored))
    throw CommandError(
        fmt::format("cannot write '{}': there is no folder '{}'", path.string(), folder.string()));
  if (std::filesystem::is_directory(path, ignored))
    throw CommandError(fmt::format("cannot write '{}': it is a folder", path.string()));
}

void write_whole_file(const std::filesystem::path& path,
                      const std::function<bool(const std::filesystem::path& temporary)>& write) {
  std::filesystem::path temporary = path;
  temporary.replace_filename(fmt::format(".ingot-{}-{}", getpid(), path.filename().string()));
  std::error_code ignored;
  try {
    errno = 0;
    if (!write(temporary)) {
      const auto reason = static_cast<std::errc>(errno != 0 ? errno : EIO);
      throw std::filesystem::filesystem_error("write", std::make_error_code(reason));
    }
    std::filesystem::rename(temporary, path);
  } catch (const std::filesystem::filesystem_error& error) {
    std::filesystem::remove(temporary, ignored);
    throw CommandError(fmt::format("cannot write '{}': {}", path.string(), error.code().message()));
  } catch (...) {
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

}  // namespace ingot::cli
