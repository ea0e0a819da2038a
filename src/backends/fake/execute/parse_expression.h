// SPDX-License-Identifier: Apache-2.0
// Expressions in the text of kernels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "loops/kernel.h"
#include "support/scanner.h"

namespace ingot::core::loops {

// What names in a kernel's text stand for.
struct TextNames {
  std::map<std::string, int, std::less<>> buffers, stages;  // stages: those that do not store
  std::map<std::string, Expr, std::less<>> shared;          // "%0": of one stage
};

// A name of a kernel's text, which may be a variable: "x", "$d0". UserError if none is next.
std::string parse_name(Scanner& scanner);
// A dim up to one of `stops` outside brackets.
Dim parse_dim_until(Scanner& scanner, std::string_view stops);
// The dims of "[i, j + 1]", brackets included.
std::vector<Dim> parse_index(Scanner& scanner);

// The rule that a text broke: the error's message without the kernel's text and the place in our sources.
std::string broken_rule(const InternalError& error);

// Reads the expression that is next. Errors have its line and column.
Expr parse_expression(Scanner& scanner, const Kernel& kernel, const TextNames& names);

}  // namespace ingot::core::loops
