// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <algorithm>

#include "passes/passes.h"

namespace ingot::core {
namespace {

constexpr std::span<const PassRow> kRows;

}  // namespace

std::span<const PassRow> pipeline() { return kRows; }

const PassRow* find_pass(std::string_view name) {
  const auto row = std::ranges::find(pipeline(), name, &PassRow::name);
  return row == pipeline().end() ? nullptr : &*row;
}

}  // namespace ingot::core
