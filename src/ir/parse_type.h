// SPDX-License-Identifier: Apache-2.0
// Types and symbols in the text of graphs.
#pragma once

#include "ir/scanner.h"
#include "types/tensor_type.h"

namespace ingot::core {

TensorType parse_type(Scanner& scanner);  // f32[2*B,128]{1, 0}
// The same where symbols may be declared: f32[B in 1..16 typical 8, S].
TensorType parse_declaring_type(Scanner& scanner, SymbolTable& symbols);
// "N in 0..64 typical 8 at most 2*B"; repeated declarations must agree.
void parse_symbol(Scanner& scanner, SymbolTable& symbols);

}  // namespace ingot::core
