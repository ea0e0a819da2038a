// SPDX-License-Identifier: Apache-2.0
// Lowering of a node, or the nodes of a fused one, to a step; shared by all backends.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ops/region.h"

namespace ingot::core {

// The nodes that a step computes: the node itself, or those of its region.
struct Members {
  std::vector<const Node*> nodes;
  std::vector<const Value*> outputs;     // in the members' graph
  std::map<const Value*, Value*> outer;  // members' inputs and outputs -> values of the whole graph
};

Members members_of(const Node& node);
std::string step_name(std::span<const Node* const> nodes);
const Node* find_contraction(const Members& members);  // the first; null if there is none
// The second of a region of two (Backend::may_fuse_twin); else null.
const Node* find_twin(const Members& members);

void add_argument(LoweredStep& step, const Members& members, const Value* value);

LoweredStep lower_routine(const Node& node);
// A collective that the queue does, on the values where they are.
LoweredStep lower_device_collective(const Node& node);

// The members as one kernel, with the ranges of its symbols.
RegionKernel compose_members(const Members& members, const SymbolTable& symbols);

// The nodes of a region after its contraction, as a kernel whose buffer 0 is the contraction's result; that
// of a twin is another buffer.
RegionKernel epilogue_of(const Members& members, const Node& contraction);
// Those that compute `values`, operands of it, with the ranges of symbols: a stage for each value. nullopt if
// there are none. What both need is in both.
std::optional<RegionKernel> prologue_of(const Members& members, std::span<const Value* const> values,
                                        const SymbolTable& symbols);
std::vector<const Value*> read_buffers(const RegionKernel& region);  // in the order of the buffers
// The epilogue of a contraction without fused nodes: stores the result.
loops::Kernel plain_epilogue(const TensorType& result);

void add_ranges(loops::Kernel& kernel, const SymbolTable& symbols);

}  // namespace ingot::core
