// SPDX-License-Identifier: Apache-2.0
#include "compiler/profile.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "engine/program.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "support/error.h"
#include "types/checked_arithmetic.h"
#include "types/linear_dim.h"

namespace ingot::core {
namespace {

const TensorArgument& find_argument(std::span<const TensorArgument> arguments, const std::string& name) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == name || std::to_string(i) == name) return arguments[i];
    names.push_back(arguments[i].name);
  }
  throw UserError("INGOT-U011", fmt::format("the model has no input \"{}\"", name),
                  fmt::format("its inputs are {}", fmt::join(names, ", ")));
}

void check_rank(const TensorArgument& input, const DimProfile& profile) {
  const size_t rank = input.type.rank();
  if (profile.min.size() == rank && profile.typical.size() == rank && profile.max.size() == rank) return;
  const size_t given = profile.min.size() != rank ? profile.min.size() : profile.max.size();
  throw UserError("INGOT-U011", fmt::format("input \"{}\" is {}, but its shape has {} dims", input.name,
                                            to_string(input.type), given));
}

// The symbol that decides the dim's size. Others follow from the dims that their symbols are.
std::optional<LinearDim> deciding(const Dim& dim, std::span<const TensorArgument> arguments) {
  const auto linear = linear_dim(dim);
  if (!linear || dim.is_symbol()) return linear;
  const Dim symbol = Dim::symbol(linear->symbol);
  const bool is_a_dim = std::ranges::any_of(arguments, [&](const TensorArgument& argument) {
    return std::ranges::find(argument.type.shape, symbol) != argument.type.shape.end();
  });
  return is_a_dim ? std::nullopt : linear;
}

DimRange sizes_of(const LinearDim& dim, const DimRange& range) {
  return {dim.size_of(range.min), range.max == INT64_MAX ? INT64_MAX : dim.size_of(range.max)};
}
DimRange symbols_of(const LinearDim& dim, int64_t low, int64_t high) {
  return {dim.symbol_of(checked_add(low, dim.factor - 1)), high == INT64_MAX ? high : dim.symbol_of(high)};
}

void apply(SymbolTable& symbols, const TensorArgument& input, std::span<const TensorArgument> arguments,
           const DimProfile& profile, size_t axis) {
  const Dim& dim = input.type.shape[axis];
  const int64_t low = profile.min[axis], high = profile.max[axis];
  if (low > high) {
    throw UserError("INGOT-U011", fmt::format("dim {} of input \"{}\": the range {}..{} is empty", axis,
                                              input.name, low, high));
  }
  if (low > profile.typical[axis] || profile.typical[axis] > high) {
    throw UserError("INGOT-U011", fmt::format("dim {} of input \"{}\": the typical size {} is not in {}..{}",
                                              axis, input.name, profile.typical[axis], low, high));
  }
  if (const auto linear = deciding(dim, arguments)) {
    SymbolInfo& symbol = symbols[linear->symbol];
    const DimRange known = sizes_of(*linear, symbol.range);
    if (low < known.min || high > known.max) {
      throw UserError("INGOT-U011",
                      fmt::format("dim {} of input \"{}\" was exported for {}..{}, but {}..{} was requested",
                                  axis, input.name, known.min, known.max, low, high),
                      low == 0 ? "let the range begin at 1: models are traced with tensors that have elements"
                               : "export the model with a wider range for this dim");
    }
    symbol.range = symbols_of(*linear, low, high);
    symbol.typical = linear->symbol_of(profile.typical[axis]);
    if (symbol.range.min > symbol.range.max) {
      throw UserError("INGOT-U011",
                      fmt::format("dim {} of input \"{}\" is {} in the model, which no size in {}..{} is",
                                  axis, input.name, dim.to_string(), low, high));
    }
  } else if (dim.is_constant() && (low != *dim.constant() || high != *dim.constant())) {
    throw UserError(
        "INGOT-U011",
        fmt::format("dim {} of input \"{}\" is {} in the model, but {}..{} was requested", axis, input.name,
                    dim.to_string(), low, high),
        "export the model with this dim dynamic (torch.export wants an example size of 2 or more for it)");
  }
}

}  // namespace

std::vector<TensorArgument> tensor_arguments(const aten::Imported& model) {
  std::vector<TensorArgument> arguments;
  for (const Value* input : model.graph.inputs())
    arguments.push_back(
        {input->name, type_for_callers(input->type, model.complex_inputs.contains(arguments.size()))});
  for (const auto& node : model.graph.nodes()) {
    if (node->op != &ops::state) continue;
    const auto source = node->attributes<ops::ModelSource>();
    const aten::StateSource& state = model.states[static_cast<size_t>(source.source)];
    const auto& slot = state.mutated_input;
    if (!slot) continue;
    const auto before =
        std::count_if(model.input_slots.begin(), model.input_slots.begin() + *slot, is_tensor);
    arguments.insert(arguments.begin() + before,
                     {source.name, type_for_callers(node->results[0]->type, state.is_complex)});
  }
  return arguments;
}

void apply_profiles(SymbolTable& symbols, std::span<const TensorArgument> arguments,
                    std::span<const DimProfile> profiles) {
  for (const DimProfile& profile : profiles) {
    const TensorArgument& argument = find_argument(arguments, profile.input);
    check_rank(argument, profile);
    for (size_t axis = 0; axis < argument.type.rank(); ++axis)
      apply(symbols, argument, arguments, profile, axis);
  }
}

}  // namespace ingot::core
