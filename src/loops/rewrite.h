// SPDX-License-Identifier: Apache-2.0
// Visiting and rebuilding expressions. Expressions are DAGs: each node is visited once, however often it is
// used.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "loops/kernel.h"

namespace ingot::core::loops {

// Calls `function` for each distinct node, operands first.
void visit(const Expr& expr, const std::function<void(const Expr& node)>& function);

// Rebuilds bottom-up: `function` sees each distinct node with its new operands in place, and returns its
// replacement (the node itself to keep it).
Expr rewrite(const Expr& expr, const std::function<Expr(const Expr& node)>& function);

// Replaces symbols in every index.
Expr substitute(const Expr& expr, const std::map<std::string, Dim>& replacements);

// Visits the dims of a stage or kernel that are outside of expressions too: extents, limits, store indices.
void visit_dims(const Stage& stage, const std::function<void(const Dim& dim)>& function);

// Symbols that `value` reads through its indices.
bool uses_symbol(const Expr& value, const std::string& symbol);

}  // namespace ingot::core::loops
