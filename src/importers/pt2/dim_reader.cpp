// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/dim_reader.h"

#include "importers/pt2/expression_parser.h"

namespace ingot::core::pt2 {

Dim DimReader::read(const std::string& expression) {
  if (const auto found = known_.find(expression); found != known_.end()) return found->second;
  Dim dim = ExpressionParser(expression, opaque_).parse();
  known_.emplace(expression, dim);
  return dim;
}

}  // namespace ingot::core::pt2
