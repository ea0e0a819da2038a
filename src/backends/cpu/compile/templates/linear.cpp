// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/linear.h"

#include <fmt/format.h>

#include "backends/cpu/compile/templates/panel_kernel.h"
#include "backends/cpu/compile/templates/plain_rows.h"
#include "backends/cpu/compile/templates/target.h"

namespace ingot::core::cpu {

namespace {

TileShape linear_tile(std::span<const TensorType> operands, CpuFeatures features) {
  return choose_tile(*operands[1].shape[0].constant(), features, operands[0].dtype, operands[1].dtype);
}

}  // namespace

std::vector<PanelTactic> linear_tactics(std::span<const TensorType> operands, CpuFeatures features) {
  return rank_tactics(linear_tile(operands, features), features);
}

Fit supports_linear(std::span<const TensorType> operands, CpuFeatures features) {
  const TensorType& weight = operands[1];
  if (!has_tiles(operands[0].dtype, weight.dtype, features))
    return {false, fmt::format("the linear template does not multiply {} and {}", name(operands[0].dtype),
                               name(weight.dtype))};
  if (!weight.shape[0].is_constant() || !weight.shape[1].is_constant()) {
    return {false, "the linear template requires weights of constant size"};
  }
  if (*weight.shape[0].constant() == 0 || *weight.shape[1].constant() == 0)
    return {false, "the product is empty"};
  if (*weight.shape[1].constant() % linear_tile(operands, features).group() != 0)
    return {false, fmt::format("groups of {} numbers do not fill the depth",
                               linear_tile(operands, features).group())};
  return {};
}

LayoutRequest linear_layouts(std::span<const TensorType> operands, CpuFeatures features) {
  const TileShape tile = linear_tile(operands, features);
  LayoutRequest request;
  request.operands = {Layout{}, panel_layout(std::array{0, 1}, 0, tile)};
  if (operands.size() > 2) request.operands.push_back(Layout{});
  request.results = {std::nullopt};
  return request;
}

TemplateKernel plan_linear(std::span<const TensorType> operands, const loops::Kernel& epilogue,
                           const SymbolTable& symbols, const Target& target, const PanelTactic& tactic) {
  PanelProblem problem;
  problem.name = "linear";
  problem.symbols = symbols;
  problem.operands.assign(operands.begin(), operands.end());
  std::span<const Dim> leading(operands[0].shape.data(), operands[0].shape.size() - 1);
  problem.rows = product(leading);
  problem.columns = *operands[1].shape[0].constant();
  problem.count = *operands[1].shape[1].constant();
  problem.tile = linear_tile(operands, features_of(target));
  take_tactic(problem, tactic, features_of(target));
  problem.epilogue = operands[0].dtype == DType::kU8 ? epilogue_of_integers(epilogue, target) : epilogue;
  problem.column_dim = operands[0].rank() - 1;
  problem.row_numbers = problem.count;
  problem.fill_rows = [depth = problem.count, rows = problem.tile.rows](const RowRequest& request) {
    fill_plain_rows(request, depth, 0, rows);
  };
  return plan_panels(std::move(problem), "", target);
}

}  // namespace ingot::core::cpu
