// SPDX-License-Identifier: Apache-2.0
// The symbols that an engine can know: sizes of inputs' dims, and integers that are passed to it. torch has
// others: integers of calls of a module, and data-dependent sizes.
#pragma once

#include <set>
#include <span>
#include <string>

#include "importers/aten/program/aten_graph.h"
#include "ir/graph.h"

namespace ingot::core::aten {

using BoundSymbols = std::set<std::string, std::less<>>;

BoundSymbols bound_symbols(const Graph& graph);
BoundSymbols rank_symbols(const SymbolTable& symbols);  // those of which each rank has its own value

// The first symbol in `dims` that is not bound, "" if all are.
std::string unbound_symbol(std::span<const Dim> dims, const BoundSymbols& bound);

// Throws UnsupportedError that names the first input or node whose sizes or attributes need an unbound
// symbol.
void refuse_unbound_symbols(const core::Graph& graph, const BoundSymbols& bound);

}  // namespace ingot::core::aten
