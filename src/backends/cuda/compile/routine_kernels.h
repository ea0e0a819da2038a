// SPDX-License-Identifier: Apache-2.0
// Operators that are routines on hosts, as kernels of their own: sorting and selection, additions with
// repeated indices, the places of true elements. They compute what the routines do, in the same order.
#pragma once

#include <optional>

#include "backends/cuda/compile/template_text.h"

namespace ingot::core::cuda {

// Others run on the host.
bool has_routine_kernel(const Node& node);
// The arguments are the node's operands, then its results.
TemplateKernel write_routine(const Node& node, const SymbolTable& symbols);

// A kernel up to its first statement: operands x0 ..., results y0 ..., and the symbols.
void open_routine(const Node& node, int threads, TemplateText& out);

const Dim& sorted_extent(const Node& node);            // of a line of a sort or selection
bool selects(const Node& node);                        // ... few elements, without sorting a line
std::optional<size_t> scatter_axis(const Node& node);  // nothing if it is none
bool has_one_index_a_row(const Node& scatter);         // the same along all dims but the axis
TemplateKernel write_sort(const Node& node, const SymbolTable& symbols);
TemplateKernel write_scatter(const Node& node, const SymbolTable& symbols);
TemplateKernel write_nonzero(const Node& node, const SymbolTable& symbols);

}  // namespace ingot::core::cuda
