// SPDX-License-Identifier: Apache-2.0
#include "compiler/option_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "support/error.h"

namespace ingot::core {
namespace {

std::optional<int64_t> as_count(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0) return std::nullopt;
  return count;
}

std::vector<std::string> split(std::string_view value, char separator) {
  std::vector<std::string> parts;
  while (!value.empty()) {
    const size_t end = value.find(separator);
    if (end != 0) parts.emplace_back(value.substr(0, end));
    value = end == std::string_view::npos ? std::string_view{} : value.substr(end + 1);
  }
  return parts;
}

// Names of this project, and torch's.
std::optional<DType> parse_precision(std::string_view word) {
  constexpr std::pair<std::string_view, DType> kAliases[] = {
      {"float32", DType::kF32}, {"float", DType::kF32},     {"fp32", DType::kF32}, {"float16", DType::kF16},
      {"half", DType::kF16},    {"bfloat16", DType::kBF16}, {"fp16", DType::kF16},
  };
  const auto* const found = std::ranges::find(kAliases, word, &std::pair<std::string_view, DType>::first);
  const auto dtype = found != std::end(kAliases) ? found->second : parse_dtype(word);
  return dtype == DType::kF32 || (dtype && is_half(*dtype)) ? dtype : std::nullopt;
}

}  // namespace

void refuse_option(std::string_view name, std::string_view value, std::string_view expected) {
  throw UserError("INGOT-U002", fmt::format("option \"{}\" cannot be \"{}\"", name, value),
                  fmt::format("use {}", expected));
}

int64_t parse_integer(std::string_view name, std::string_view value, int64_t low, int64_t high) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < low || number > high) {
    refuse_option(name, value, fmt::format("an integer from {} to {}", low, high));
  }
  return number;
}

bool parse_bool(std::string_view name, std::string_view value) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  refuse_option(name, value, "true or false");
}

std::optional<BisectLimit> parse_limit(std::string_view name, std::string_view value) {
  if (value == "-1") return std::nullopt;
  const size_t dot = std::min(value.find('.'), value.size());
  const auto runs = as_count(value.substr(0, dot));
  const auto rewrites = dot < value.size() ? as_count(value.substr(dot + 1)) : std::optional<int64_t>(0);
  if (!runs || !rewrites)
    refuse_option(name, value, "-1, or how many passes, and rewrites of the next: 12 or 12.40");
  return BisectLimit{.runs = *runs, .rewrites = *rewrites};
}

std::vector<std::string> parse_names(std::string_view value) { return split(value, ','); }
std::vector<std::string> parse_lines(std::string_view value) { return split(value, '\n'); }

std::vector<DType> parse_precisions(std::string_view name, std::string_view value) {
  std::vector<DType> dtypes;
  for (const std::string& word : parse_names(value)) {
    const auto dtype = parse_precision(word);
    if (!dtype)
      refuse_option(
          name, word,
          "f32, f16 or bf16, separated by commas; ingot.quantize makes models with int8, fp8 and int4");
    if (*dtype != DType::kF32) dtypes.push_back(*dtype);
  }
  std::ranges::sort(dtypes);
  const auto repeated = std::ranges::unique(dtypes);
  dtypes.erase(repeated.begin(), repeated.end());
  return dtypes;
}

std::string parse_ranks(std::string_view name, std::string_view value) {
  if (value == "any") return "any";
  for (const std::string& entry : parse_names(value)) {
    const std::string rank = entry.substr(entry.rfind(':') + 1);  // of no group: from 0 on
    if (rank.empty() || rank.find_first_not_of("0123456789") != std::string::npos || rank.size() > 9)
      refuse_option(name, value, "any, a rank such as 0, or GROUP:RANK for each group, separated by commas");
  }
  return std::string(value);
}

std::vector<BackendChoice> parse_choices(std::string_view name, std::string_view value) {
  std::vector<BackendChoice> choices;
  for (const std::string& entry : parse_names(value)) {
    const size_t equals = entry.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size())
      refuse_option(name, entry, "PATTERN=BACKEND, separated by commas, such as softmax=cpu");
    choices.push_back({entry.substr(0, equals), entry.substr(equals + 1)});
  }
  return choices;
}

Target::Numerics parse_numerics(std::string_view name, std::string_view value) {
  if (value == "strict") return Target::Numerics::kStrict;
  if (value == "default") return Target::Numerics::kDefault;
  if (value == "fast") return Target::Numerics::kFast;
  refuse_option(name, value, "strict, default or fast");
}

}  // namespace ingot::core
