// SPDX-License-Identifier: Apache-2.0
// The only torch semantics in the project: an aten::Program becomes a Graph of our ops, by one converter per
// ATen overload.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

struct ImportOptions {
  bool weights_are_constants = false;  // their values are part of the graph
  // The engine draws random numbers itself, from this seed on; otherwise they are torch's.
  std::optional<int64_t> random_seed;
};

// Throws UnsupportedError for the first node that has no converter (or whose converter rejects its
// arguments), UserError for invalid programs.
Imported import_program(const Program& program, const ImportOptions& options = {});

// Whether calls of that overload are best left whole for Ingot; a converter may still reject a call's
// arguments.
bool has_importer(std::string_view target);

// A node that Ingot cannot run, and why.
struct Refusal {
  size_t node;         // index into the graph's nodes
  std::string target;  // "aten.foo.default"
  std::string reason;
  std::string source;  // line of the user's model
};

// All nodes known to be unsupported individually, without importing.
// `draws`: random numbers are drawn in the engine.
std::vector<Refusal> find_unsupported(const Graph& graph, bool draws = false);

}  // namespace ingot::core::aten
