// SPDX-License-Identifier: Apache-2.0
// Names of symbols. A program calls a size [A-Za-z_][A-Za-z0-9_.]*. The compiler's own variables (loops,
// bindings) have a '$' before such a name: Dim::symbol takes both, and whatever reads programs, files or a
// caller's names refuses the second form, so that no program's symbol is ever a variable.
#pragma once

#include <string_view>

namespace ingot::core {

bool is_symbol_name(std::string_view name);       // of a program
void require_symbol_name(std::string_view name);  // UserError INGOT-U103
constexpr char kVariableMark = '$';

}  // namespace ingot::core
