// SPDX-License-Identifier: Apache-2.0
// The text form of graphs: `ingot opt` reads and writes it, pass tests compare it, cache keys contain it.
//
//   graph main(%ids: i64[B in 1..16 typical 8, S in 1..256], %mask: i64[B, S]) {
//     symbol N in 0..4096 typical 64 at most B*S
//     %w = weight() {name="layer.0.weight", shape=[384, 384]} : f32[384,384]
//     %c = constant() {value=f32[2](1, 2)} : f32[2]
//     %h = linear(%x, %w, none) : f32[B,S,384]   -- bert.py:214 in forward
//     %r = fused(%h) { graph region(%x: f32[B,S,384]) { ... } } : f32[B,S,384]
//     update %k = %k2
//     return %h
//   }
// Attributes equal to their defaults are omitted, and so are values of large constants: f32[768](sha256:...)
// cannot be parsed. Symbols that are not a dim of an input have a line of their own. Result types may be
// omitted if they are inferred. Names that are not words are quoted: %"a b". Comments run from "--" to the
// end of the line, outside strings.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace ingot::core {

struct PrintOptions {
  bool sources = true;  // "-- file:line" comments
  bool canonical =
      false;  // values and graphs renumbered in order, no comments: equal text means equal graphs
};
std::string to_string(const Graph& graph, const PrintOptions& options = {});

// Op names are resolved by `find_op` (ops/ops.h has it). UserError gives line and column of the first
// mistake. Nesting is at most 64 deep; sizes of literals are bounded by the text.
using FindOp = std::function<const Op*(std::string_view)>;
Graph parse_graph(std::string_view text, const FindOp& find_op);

}  // namespace ingot::core
