// SPDX-License-Identifier: Apache-2.0
// Names of symbols. In programs a symbol's name is [A-Za-z_][A-Za-z0-9_.]*. The compiler's own variables
// (loops, bindings) have a '$' in front of such a name: Dim::symbol accepts both, but readers of programs,
// files and callers' names reject the second form, so that no symbol of a program is ever a variable.
#pragma once

#include <string_view>

namespace ingot::core {

bool is_symbol_name(std::string_view name);       // of a program
void require_symbol_name(std::string_view name);  // UserError INGOT-U103
constexpr char kVariableMark = '$';

}  // namespace ingot::core
