// SPDX-License-Identifier: Apache-2.0
// Values of options, from the texts that users give. UserError INGOT-U002 names the option and what it may
// be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "passes/pass_runner.h"

namespace ingot::core {

[[noreturn]] void refuse_option(std::string_view name, std::string_view value, std::string_view expected);

int64_t parse_integer(std::string_view name, std::string_view value, int64_t low, int64_t high);
bool parse_bool(std::string_view name, std::string_view value);
// "12", or "12.40"; -1: none.
std::optional<BisectLimit> parse_limit(std::string_view name, std::string_view value);
std::vector<std::string> parse_names(std::string_view value);  // separated by commas
std::vector<std::string> parse_lines(std::string_view value);
std::vector<DType> parse_precisions(std::string_view name, std::string_view value);  // without f32
// "", "any", or ranks, each with or without its group: set_only_rank finds the groups.
std::string parse_ranks(std::string_view name, std::string_view value);
std::vector<BackendChoice> parse_choices(std::string_view name, std::string_view value);
Target::Numerics parse_numerics(std::string_view name, std::string_view value);

}  // namespace ingot::core
