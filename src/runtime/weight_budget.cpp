// SPDX-License-Identifier: Apache-2.0
#include "runtime/weight_budget.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace ingot::core {
namespace {

struct ByteUnit {
  std::string_view name;
  double bytes;
};
constexpr ByteUnit kByteUnits[] = {{"", 1},     {"B", 1},         {"KB", 1e3},      {"MB", 1e6},
                                   {"GB", 1e9}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

}  // namespace

size_t WeightBudget::in_bytes(size_t total, size_t available) const {
  constexpr size_t kReserved = 8;
  switch (kind) {
    case Kind::kAuto:
      return std::min(total, available - available / kReserved);
    case Kind::kBytes:
      return std::min(total, bytes);
    case Kind::kShare:
      return static_cast<size_t>(std::ceil(share * static_cast<double>(total)));
    case Kind::kAll:
      break;
  }
  return total;
}

std::optional<WeightBudget> parse_weight_budget(std::string_view text) {
  if (text == "all") return WeightBudget{};
  if (text == "auto") return WeightBudget{.kind = WeightBudget::Kind::kAuto};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view unit(next, static_cast<size_t>(end - next));
  if (unit == "%") {
    constexpr double kPercent = 100;
    if (number > kPercent) return std::nullopt;
    return WeightBudget{.kind = WeightBudget::Kind::kShare, .share = number / kPercent};
  }
  const auto* const found = std::ranges::find(kByteUnits, unit, &ByteUnit::name);
  constexpr double kMost = 1e18;
  if (found == std::end(kByteUnits) || number * found->bytes > kMost) return std::nullopt;
  return WeightBudget{.kind = WeightBudget::Kind::kBytes,
                      .bytes = static_cast<size_t>(number * found->bytes)};
}

}  // namespace ingot::core
