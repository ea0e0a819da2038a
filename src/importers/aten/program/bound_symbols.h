// SPDX-License-Identifier: Apache-2.0
// Which symbols an engine can know: those that are the size of a dim of an input. Torch has others: numbers
// that the caller gives, and sizes that only the data tell.
#pragma once

#include <set>
#include <span>
#include <string>

#include "importers/aten/program/aten_graph.h"
#include "ir/graph.h"

namespace ingot::core::aten {

using BoundSymbols = std::set<std::string, std::less<>>;

BoundSymbols bound_symbols(const Graph& graph);

// The first symbol in `dims` that is not bound, "" if there is none.
std::string unbound_symbol(std::span<const Dim> dims, const BoundSymbols& bound);

// Throws UnsupportedError that names the first input or node whose sizes or attributes need an unbound
// symbol.
void refuse_unbound_symbols(const core::Graph& graph, const BoundSymbols& bound);

}  // namespace ingot::core::aten
