// SPDX-License-Identifier: Apache-2.0
#include "compiler/profile.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/error.h"

namespace ingot::core {
namespace {

const Value* find_input(const Graph& graph, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Value* input : graph.inputs()) {
    if (input->name == name || std::to_string(input->index) == name) return input;
    names.push_back(input->name);
  }
  throw UserError("INGOT-U011", fmt::format("the model has no input \"{}\"", name),
                  fmt::format("its inputs are {}", fmt::join(names, ", ")));
}

void check_rank(const Value& input, const DimProfile& profile) {
  const size_t rank = input.type.rank();
  if (profile.min.size() == rank && profile.typical.size() == rank && profile.max.size() == rank) return;
  const size_t given = profile.min.size() != rank ? profile.min.size() : profile.max.size();
  throw UserError("INGOT-U011", fmt::format("input \"{}\" is {}, but its shape has {} dims", input.name,
                                            to_string(input.type), given));
}

void apply(Graph& graph, const Value& input, const DimProfile& profile, size_t axis) {
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
  if (dim.is_symbol()) {
    SymbolInfo& symbol = graph.symbols[dim.symbol_name()];
    const DimRange known = symbol.range;
    if (low < known.min || high > known.max) {
      throw UserError("INGOT-U011",
                      fmt::format("dim {} of input \"{}\" was exported for {}..{}, but {}..{} was requested",
                                  axis, input.name, known.min, known.max, low, high),
                      "export the model with a wider range for this dim");
    }
    symbol.range = {low, high};
    symbol.typical = profile.typical[axis];
  } else if (dim.is_constant() && (low != *dim.constant() || high != *dim.constant())) {
    throw UserError(
        "INGOT-U011",
        fmt::format("dim {} of input \"{}\" is {} in the model, but {}..{} was requested", axis, input.name,
                    dim.to_string(), low, high),
        "export the model with this dim dynamic (torch.export wants an example size of 2 or more for it)");
  }
}

}  // namespace

void apply_profiles(Graph& graph, std::span<const DimProfile> profiles) {
  for (const DimProfile& profile : profiles) {
    const Value* input = find_input(graph, profile.input);
    check_rank(*input, profile);
    for (size_t axis = 0; axis < input->type.rank(); ++axis) apply(graph, *input, profile, axis);
  }
}

}  // namespace ingot::core
