// SPDX-License-Identifier: Apache-2.0
#include "routines/collective_rows.h"

#include <charconv>

#include "routines/routines.h"

namespace ingot::core {
namespace {

using routines::require_fit;

std::vector<size_t> parse_rows(const std::string& text, std::string_view routine) {
  std::vector<size_t> rows;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    size_t value = 0;
    const auto [next, failure] = std::from_chars(at, end, value);
    require_fit(failure == std::errc() && (next == end || *next == ','), routine);
    rows.push_back(value);
    require_fit(next == end || next + 1 != end, routine);  // no comma at the end
    at = next == end ? end : next + 1;
  }
  return rows;
}

}  // namespace

std::vector<size_t> rows_by_rank(const std::string& text, size_t total, size_t ranks) {
  constexpr std::string_view kName = "all_to_all";
  std::vector<size_t> rows = parse_rows(text, kName);
  if (rows.empty()) {
    require_fit(total % ranks == 0, kName);
    rows.assign(ranks, total / ranks);
  }
  require_fit(rows.size() == ranks, kName);
  size_t sum = 0;
  for (const size_t count : rows) {
    require_fit(count <= total - sum, kName);
    sum += count;
  }
  require_fit(sum == total, kName);
  return rows;
}

}  // namespace ingot::core
