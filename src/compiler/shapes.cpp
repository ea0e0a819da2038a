// SPDX-License-Identifier: Apache-2.0
#include "compiler/shapes.h"

#include <fmt/core.h>

#include <charconv>

#include "support/error.h"

namespace ingot::core {
namespace {

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text = text.substr(at + separator.size());
  }
}

[[noreturn]] void refuse(std::string_view part) {
  throw UserError("INGOT-U005", fmt::format("\"{}\" is not a shape", part),
                  "write name:1x128, or ranges as name:1..8x1..32..128 (min..typical..max)");
}

int64_t parse_size(std::string_view text, std::string_view part) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size < 0) refuse(part);
  return size;
}

void add_dim(DimProfile& profile, std::string_view dim, std::string_view part) {
  std::vector<int64_t> sizes;
  for (const std::string_view size : split(dim, "..")) sizes.push_back(parse_size(size, part));
  if (sizes.size() > 3) refuse(part);
  profile.min.push_back(sizes.front());
  profile.max.push_back(sizes.back());
  // Without a typical size, optimizes for the largest.
  profile.typical.push_back(sizes.size() == 3 ? sizes[1] : sizes.back());
}

}  // namespace

std::vector<DimProfile> parse_shapes(std::string_view text) {
  std::vector<DimProfile> profiles;
  if (text.empty()) return profiles;
  for (const std::string_view part : split(text, ",")) {
    const size_t colon = part.rfind(':');
    if (colon == std::string_view::npos || colon == 0) refuse(part);
    DimProfile profile{.input = std::string(part.substr(0, colon)), .min = {}, .typical = {}, .max = {}};
    const std::string_view dims = part.substr(colon + 1);
    if (!dims.empty()) {
      for (const std::string_view dim : split(dims, "x")) add_dim(profile, dim, part);
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace ingot::core
