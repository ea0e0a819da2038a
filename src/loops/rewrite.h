// SPDX-License-Identifier: Apache-2.0
// Walking and rebuilding expressions. Expressions are graphs: each node is visited once however often it is
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

// Rebuilds from the leaves up: `function` sees each distinct node with its new operands in place, and returns
// what to use instead (the node itself to keep it).
Expr rewrite(const Expr& expr, const std::function<Expr(const Expr& node)>& function);

// Replaces symbols in every index.
Expr substitute(const Expr& expr, const std::map<std::string, Dim>& replacements);

// Dims of a stage or kernel that are not inside expressions are visited as well: extents, limits, store
// indices.
void visit_dims(const Stage& stage, const std::function<void(const Dim& dim)>& function);

// Symbols that `value` reads through its indices.
bool uses_symbol(const Expr& value, const std::string& symbol);

}  // namespace ingot::core::loops
