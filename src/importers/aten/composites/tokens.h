// SPDX-License-Identifier: Apache-2.0
// Words of the composites' language. A row is a line that is not indented, and the indented ones after it.
#pragma once

#include <string_view>
#include <vector>

namespace ingot::core::aten {

struct Token {
  enum class Kind { kName, kNumber, kText, kSymbol, kLineEnd, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  // of texts without quotes
};

// One list per row, which ends with kEnd. Lines do not end inside of brackets.
std::vector<std::vector<Token>> rows_of_tokens(std::string_view text);

}  // namespace ingot::core::aten
