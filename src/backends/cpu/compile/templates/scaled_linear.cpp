// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/scaled_linear.h"

#include <array>

#include <fmt/format.h>

#include "backends/cpu/compile/templates/panel_kernel.h"
#include "backends/cpu/compile/templates/plain_rows.h"
#include "backends/cpu/compile/templates/target.h"

namespace ingot::core::cpu {
namespace {

TileShape scaled_shape(std::span<const TensorType> operands, const ops::ScaledLinear& form,
                       CpuFeatures features) {
  const TensorType& weight = operands[ops::kScaledWeight];
  TileShape tile = choose_tile(*weight.shape[0].constant(), features, DType::kF32,
                               form.packed ? DType::kU4 : weight.dtype);
  tile.by_tables = false;  // scales are in the order of columns
  return tile;
}

int64_t depth_of(std::span<const TensorType> operands) {
  return *operands[ops::kScaledX].shape.back().constant();
}

BlockScales block_scales(std::span<const TensorType> operands, const ops::ScaledLinear& form) {
  const TensorType& scales = operands[ops::kScales];
  BlockScales result{
      .block = depth_of(operands) / *scales.shape[1].constant(), .scale = scales.dtype, .zero_point = {}};
  result.offset = form.offset;
  if (operands.size() > ops::kZeroPoints) result.zero_point = operands[ops::kZeroPoints].dtype;
  return result;
}

}  // namespace

bool has_scaled_tiles(DType numbers, int64_t block, CpuFeatures features) {
  BlockScales scales;
  scales.block = block;
  return has_scaled_tiles(choose_tile(0, features, DType::kF32, numbers), scales);
}

Fit supports_scaled_linear(std::span<const TensorType> operands, const ops::ScaledLinear& form,
                           CpuFeatures features) {
  const Shape& weight = operands[ops::kScaledWeight].shape;
  if (!weight[0].is_constant() || !weight[1].is_constant())
    return {false, "the scaled_linear template requires weights of constant size"};
  if (weight[0] == Dim(0)) return {false, "the product is empty"};
  const BlockScales scales = block_scales(operands, form);
  if (!has_scaled_tiles(scaled_shape(operands, form, features), scales))
    return {false, fmt::format("blocks of {} elements are not whole vectors", scales.block)};
  return {};
}

LayoutRequest scaled_linear_layouts(std::span<const TensorType> operands, const ops::ScaledLinear& form,
                                    CpuFeatures features) {
  const TileShape tile = scaled_shape(operands, form, features);
  LayoutRequest request;
  request.operands.assign(operands.size(), panel_layout(std::array{0, 1}, 0, tile));
  constexpr int kBytesOfWord = 4;
  if (form.packed)
    request.operands[ops::kScaledWeight] = panel_layout(std::array{0, 1}, 0, tile, kBytesOfWord);
  request.operands[ops::kScaledX] = Layout{};
  request.results = {std::nullopt};
  return request;
}

TemplateKernel plan_scaled_linear(std::span<const TensorType> operands, const ops::ScaledLinear& form,
                                  const loops::Kernel& epilogue, const SymbolTable& symbols,
                                  const Target& target) {
  PanelProblem problem;
  problem.name = "scaled_linear";
  problem.symbols = symbols;
  problem.operands.assign(operands.begin(), operands.end());
  const Shape& x = operands[ops::kScaledX].shape;
  problem.rows = product(std::span(x.data(), x.size() - 1));
  problem.columns = *operands[ops::kScaledWeight].shape[0].constant();
  problem.count = depth_of(operands);
  problem.tile = scaled_shape(operands, form, features_of(target));
  problem.scales = block_scales(operands, form);
  take_tactic(problem, {}, features_of(target));
  problem.epilogue = epilogue;
  problem.column_dim = x.size() - 1;
  problem.fill_rows = [depth = problem.count, rows = problem.tile.rows](const RowRequest& request) {
    fill_plain_rows(request, depth, 0, rows);
  };
  return plan_panels(std::move(problem), fmt::format("packed {} offset {}", form.packed, form.offset),
                     target);
}

}  // namespace ingot::core::cpu
