// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "cli/commands.h"
#include "support/text.h"

namespace ingot::cli {

std::string suggest(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  const std::string_view nearest = core::nearest_name(word, candidates);
  return nearest.empty() ? "" : fmt::format("; the nearest is '{}'", nearest);
}

}  // namespace ingot::cli
