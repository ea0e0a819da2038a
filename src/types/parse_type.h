// SPDX-License-Identifier: Apache-2.0
// Types and symbols in the text of graphs and kernels.
#pragma once

#include "support/scanner.h"
#include "types/tensor_type.h"

namespace ingot::core {

TensorType parse_type(Scanner& scanner);  // f32[2*B,128]{1, 0}
// The same without blanks before the layout: in the text of kernels, a brace after one begins the body.
TensorType parse_buffer_type(Scanner& scanner);
// The same where symbols may be declared: f32[B in 1..16 typical 8, S].
TensorType parse_declaring_type(Scanner& scanner, SymbolTable& symbols);
// "N in 0..64 typical 8 at most 2*B"; repeated declarations must agree.
void parse_symbol(Scanner& scanner, SymbolTable& symbols);

}  // namespace ingot::core
