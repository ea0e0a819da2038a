// SPDX-License-Identifier: Apache-2.0
#include "support/paths.h"

#include "support/error.h"
#include "support/windows/text.h"

namespace ingot::core {

std::filesystem::path to_path(std::string_view text) {
  std::wstring wide = widen(text);
  if (wide.empty() && !text.empty())
    throw UserError("INGOT-U120", "a path is not valid UTF-8", "give paths in UTF-8");
  return wide;
}

std::string to_text(const std::filesystem::path& path) { return narrow(path.native()); }

}  // namespace ingot::core
