// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/dim_reader.h"

#include <fmt/format.h>

#include "importers/pt2/expression_parser.h"
#include "support/error.h"

namespace ingot::core::pt2 {

Dim DimReader::read(const std::string& expression) {
  if (const auto found = known_.find(expression); found != known_.end()) return found->second;
  Dim dim = ExpressionParser(expression, *this).parse();
  known_.emplace(expression, dim);
  return dim;
}

Dim DimReader::opaque(std::string_view text) {
  const auto [entry, is_new] = opaque_.try_emplace(std::string(text));
  if (is_new) {
    const std::string name = fmt::format("$computed{}", opaque_.size() - 1);
    entry->second = Dim::symbol(name);
    symbols_[name].range = {INT64_MIN, INT64_MAX};
  }
  return entry->second;
}

}  // namespace ingot::core::pt2
