// SPDX-License-Identifier: Apache-2.0
#include "backends/steps/members.h"

#include <algorithm>
#include <set>

#include "engine/group_uses.h"
#include "ir/bound_symbol.h"
#include "loops/compose.h"
#include "loops/rewrite.h"
#include "ops/routine_attributes.h"

namespace ingot::core {

std::string step_name(std::span<const Node* const> nodes) {
  std::string names;
  for (const Node* node : nodes) names += (names.empty() ? "" : ", ") + std::string(node->op->name);
  return nodes.size() == 1 ? names : "fused[" + names + "]";
}

Members members_of(const Node& node) {
  Members members;
  if (!node.op->traits.has(Trait::kFused)) {
    members.nodes = {&node};
    for (Value* result : node.results) members.outputs.push_back(result);
    for (Value* value : node.operands) members.outer.emplace(value, value);
    for (Value* value : node.results) members.outer.emplace(value, value);
    return members;
  }
  const Graph& region = *node.graphs[0];
  for (const auto& member : region.nodes()) members.nodes.push_back(member.get());
  for (size_t i = 0; i < region.inputs().size(); ++i)
    members.outer.emplace(region.inputs()[i], node.operands[i]);
  for (size_t i = 0; i < region.outputs.size(); ++i) {
    members.outputs.push_back(region.outputs[i]);
    members.outer.emplace(region.outputs[i], node.results[i]);
  }
  return members;
}

void add_argument(LoweredStep& step, const Members& members, const Value* value) {
  const bool writes = std::ranges::find(members.outputs, value) != members.outputs.end();
  step.arguments.push_back(members.outer.at(value));
  step.writes.push_back(writes);
}

namespace {
bool is_contraction(const Node* node) { return node->op->traits.has(Trait::kContraction); }
}  // namespace

const Node* find_contraction(const Members& members) {
  const auto found = std::ranges::find_if(members.nodes, is_contraction);
  return found == members.nodes.end() ? nullptr : *found;
}

const Node* find_twin(const Members& members) {
  const auto first = std::ranges::find_if(members.nodes, is_contraction);
  if (first == members.nodes.end()) return nullptr;
  const auto found = std::find_if(first + 1, members.nodes.end(), is_contraction);
  return found == members.nodes.end() ? nullptr : *found;
}

LoweredStep lower_routine(const Node& node) {
  LoweredStep step;
  step.name = node.op->name;
  step.action = RoutineStep{std::string(node.op->routine), routine_attributes(node)};
  for (Value* operand : node.operands) {
    if (operand == nullptr) continue;
    step.arguments.push_back(operand);
    step.writes.push_back(false);
  }
  for (Value* result : node.results) {
    step.arguments.push_back(result);
    step.writes.push_back(true);
  }
  if (const std::string symbol = bound_symbol(node); !symbol.empty())
    step.binds.emplace_back(symbol, node.results[0]);
  return step;
}

LoweredStep lower_device_collective(const Node& node) {
  LoweredStep step = lower_routine(node);
  std::get<RoutineStep>(step.action).attributes.push_back({std::string(kOnDevice), int64_t{1}});
  return step;
}

void add_ranges(loops::Kernel& kernel, const SymbolTable& symbols) {
  for (const std::string& name : loops::free_symbols(kernel)) {
    if (const auto info = symbols.find(name); info != symbols.end()) kernel.symbols.insert(*info);
  }
}

RegionKernel compose_members(const Members& members, const SymbolTable& symbols) {
  RegionKernel region = compose_region(members.nodes, members.outputs);
  add_ranges(region.kernel, symbols);
  return region;
}

namespace {

// Those of the members, in order, that `values` are computed from without contractions.
std::vector<const Node*> nodes_before(const Members& members, std::span<const Value* const> values) {
  std::set<const Value*> needed(values.begin(), values.end());
  std::vector<const Node*> nodes;
  for (auto node = members.nodes.rbegin(); node != members.nodes.rend(); ++node) {
    const auto is_needed = [&](const Value* result) { return needed.contains(result); };
    if (is_contraction(*node) || std::ranges::none_of((*node)->results, is_needed)) continue;
    nodes.insert(nodes.begin(), *node);
    needed.insert((*node)->operands.begin(), (*node)->operands.end());
  }
  return nodes;
}

// Another result of the same elements, as a stage of the loops that compute the first.
void add_stage(RegionKernel& region, RegionKernel other) {
  std::vector<int> numbers;
  for (size_t i = 0; i < other.buffers.size(); ++i) {
    const auto known = std::ranges::find(region.buffers, other.buffers[i]);
    numbers.push_back(static_cast<int>(known - region.buffers.begin()));
    if (known != region.buffers.end()) continue;
    region.buffers.push_back(other.buffers[i]);
    region.kernel.buffers.push_back(other.kernel.buffers[i]);
  }
  loops::use_buffers(other.kernel, numbers);
  std::map<std::string, Dim> same;
  for (size_t i = 0; i < other.kernel.parallel.size(); ++i)
    same.emplace(other.kernel.parallel[i].variable, Dim::symbol(region.kernel.parallel[i].variable));
  loops::Stage& stage = region.kernel.stages.emplace_back(std::move(other.kernel.stages[0]));
  stage.value = loops::substitute(stage.value, same);
  for (Dim& dim : stage.store->index) dim = substitute(dim, same);
  region.kernel.symbols.insert(other.kernel.symbols.begin(), other.kernel.symbols.end());
}

// The outputs of a contraction's region: elementwise ones are computed together, element by element.
RegionKernel compose_outputs(std::span<const Node* const> nodes, std::span<const Value* const> outputs) {
  std::vector<RegionKernel> each;
  for (size_t i = 0; i < outputs.size(); ++i) each.push_back(compose_region(nodes, outputs.subspan(i, 1)));
  const auto is_alone = [](const RegionKernel& region) {
    return loops::is_elementwise(region.kernel) && region.kernel.stages[0].bindings.empty();
  };
  if (!std::ranges::all_of(each, is_alone)) return compose_region(nodes, outputs);
  for (size_t i = 1; i < each.size(); ++i) add_stage(each[0], std::move(each[i]));
  return std::move(each[0]);
}

}  // namespace

RegionKernel epilogue_of(const Members& members, const Node& contraction) {
  const std::vector<const Node*> rest = nodes_before(members, members.outputs);
  const Value* result = contraction.results[0];
  if (rest.empty()) {
    RegionKernel plain{plain_epilogue(result->type), {result, result}};
    return plain;
  }
  RegionKernel epilogue = compose_outputs(rest, members.outputs);
  const auto position = std::ranges::find(epilogue.buffers, result) - epilogue.buffers.begin();
  return move_buffer_first(std::move(epilogue), static_cast<int>(position));
}

std::optional<RegionKernel> prologue_of(const Members& members, std::span<const Value* const> values,
                                        const SymbolTable& symbols) {
  const std::vector<const Node*> nodes = nodes_before(members, values);
  if (nodes.empty()) return std::nullopt;
  RegionKernel prologue = compose_region(nodes, values);
  add_ranges(prologue.kernel, symbols);
  return prologue;
}

std::vector<const Value*> read_buffers(const RegionKernel& region) {
  std::vector<const Value*> read;
  for (size_t i = 0; i < region.buffers.size(); ++i) {
    if (region.kernel.buffers[i].access == loops::Access::kRead) read.push_back(region.buffers[i]);
  }
  return read;
}

loops::Kernel plain_epilogue(const TensorType& result) {
  loops::Kernel kernel;
  kernel.name = "store";
  kernel.buffers = {{"sums", {DType::kF32, result.shape, {}}, loops::Access::kRead},
                    {"result", result, loops::Access::kWrite}};
  std::vector<Dim> index;
  for (size_t dim = 0; dim < result.rank(); ++dim) {
    kernel.parallel.push_back({"$d" + std::to_string(dim), result.shape[dim]});
    index.push_back(Dim::symbol(kernel.parallel.back().variable));
  }
  loops::Stage stage;
  stage.name = "result";
  stage.value = loops::load(0, DType::kF32, index);
  stage.store = loops::Store{1, index};
  kernel.stages.push_back(std::move(stage));
  return kernel;
}

}  // namespace ingot::core
