// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/convolution.h"

#include <fmt/ranges.h>

#include "backends/cpu/compile/templates/depthwise.h"
#include "backends/cpu/compile/templates/image_rows.h"
#include "backends/cpu/compile/templates/panel_kernel.h"
#include "backends/cpu/compile/templates/plain_rows.h"
#include "backends/cpu/compile/templates/target.h"
#include "ops/convolution.h"

namespace ingot::core::cpu {

namespace {

// Panels must not cross groups, so their width divides a group's columns: with groups, vectors may be short.
TileShape tile_of(int64_t columns, int64_t groups, CpuFeatures features, DType a, DType b) {
  if (groups == 1) return choose_tile(columns, features, a, b);
  int lanes = (features.has(CpuFeature::kX86V4) ? 512 : 256) / bit_width(a);
  while (columns % lanes != 0) lanes /= 2;
  int vectors = columns / lanes % 2 == 0 ? 2 : 1;
  return {.rows = 6, .vectors = vectors, .lanes = lanes, .a = a, .b = b};
}

int64_t group_columns(const TensorType& weight, const ops::Convolution& attributes) {
  return *weight.shape[0].constant() / attributes.groups;
}

TileShape convolution_tile(std::span<const TensorType> operands, const ops::Convolution& attributes,
                           CpuFeatures features) {
  return tile_of(group_columns(operands[1], attributes), attributes.groups, features, operands[0].dtype,
                 operands[1].dtype);
}

PanelProblem make_problem(std::span<const TensorType> operands, const TensorType& result,
                          const ops::Convolution& attributes, int64_t outside, CpuFeatures features,
                          const PanelTactic& tactic) {
  ImageGeometry geometry = image_geometry(operands, result, attributes);
  geometry.outside = outside;
  PanelProblem problem;
  problem.name = "convolution";
  problem.operands.assign(operands.begin(), operands.end());
  problem.rows = result.shape[0] * product(geometry.output);
  problem.columns = group_columns(operands[1], attributes);
  problem.groups = attributes.groups;
  problem.segments = geometry.segments();
  problem.count = geometry.count();
  problem.tile = convolution_tile(operands, attributes, features);
  take_tactic(problem, tactic, features);
  problem.column_dim = 1;
  problem.extra_bytes = geometry.extra_bytes(problem.tile.rows);
  int rows = problem.tile.rows;
  if (geometry.is_plain()) {
    if (problem.groups == 1) problem.row_numbers = geometry.channels;
    problem.fill_rows = [rows, geometry](const RowRequest& request) {
      fill_plain_rows(request, geometry.channels, geometry.group_channels, rows);
    };
  } else {
    problem.fill_rows = [rows, geometry](const RowRequest& request) {
      fill_image_rows(request, geometry, rows);
    };
    problem.begin = [rows, geometry](const RowRequest& request) {
      begin_image_rows(request, geometry, rows);
    };
  }
  return problem;
}

}  // namespace

std::vector<PanelTactic> convolution_tactics(std::span<const TensorType> operands,
                                             const ops::Convolution& attributes, CpuFeatures features) {
  if (is_depthwise(operands, attributes)) return {{}};
  return rank_tactics(convolution_tile(operands, attributes, features), features);
}

Fit supports_convolution(std::span<const TensorType> operands, const ops::Convolution& attributes,
                         CpuFeatures features) {
  const DType a = operands[0].dtype, b = operands[1].dtype;
  const bool is_narrow_weight = a == DType::kF32 && b != a;
  if (!has_tiles(a, b, features) || is_narrow_weight)
    return {false, fmt::format("the convolution template does not multiply {} and {}", name(a), name(b))};
  for (const Dim& dim : operands[1].shape) {
    if (!dim.is_constant()) return {false, "the convolution template requires weights of constant size"};
    if (*dim.constant() == 0) return {false, "the convolution template requires non-empty weights"};
  }
  if (!operands[0].shape[1].is_constant())
    return {false, "the convolution template requires a constant channel count"};
  size_t spatial = operands[0].rank() - 2;
  if (spatial < 1 || spatial > 3) return {false, "the convolution template supports 1 to 3 spatial dims"};
  if (is_depthwise(operands, attributes)) return supports_depthwise(operands, features);
  const int group = choose_tile(0, features, a, b).group();
  if (group > 1 && (attributes.groups != 1 || *operands[0].shape[1].constant() % group != 0))
    return {false,
            fmt::format("products of {} need channels in groups of {}, and one group", name(a), group)};
  return {};
}

LayoutRequest convolution_layouts(std::span<const TensorType> operands, const ops::Convolution& attributes,
                                  CpuFeatures features) {
  if (is_depthwise(operands, attributes)) return depthwise_layouts(operands, features);
  std::vector<int> order = channels_last(operands[0].rank());
  const TileShape tile = convolution_tile(operands, attributes, features);
  LayoutRequest request;
  request.operands = {Layout::permutation(order), panel_layout(order, 0, tile)};
  if (operands.size() > 2) request.operands.push_back(Layout{});
  request.results = {Layout::permutation(order)};
  return request;
}

TemplateKernel plan_convolution(std::span<const TensorType> operands, const TensorType& result,
                                const ops::Convolution& attributes, int64_t outside,
                                const loops::Kernel& epilogue, const SymbolTable& symbols,
                                const Target& target, const PanelTactic& tactic) {
  const loops::Kernel fused =
      operands[0].dtype == DType::kU8 ? epilogue_of_integers(epilogue, target) : epilogue;
  if (is_depthwise(operands, attributes)) {
    return plan_depthwise(operands, result, attributes, outside, fused, symbols, target);
  }
  PanelProblem problem = make_problem(operands, result, attributes, outside, features_of(target), tactic);
  problem.symbols = symbols;
  problem.epilogue = fused;
  std::string key = fmt::format("stride {} padding {} of {} dilation {}", attributes.stride,
                                attributes.padding, outside, attributes.dilation);
  return plan_panels(std::move(problem), key, target);
}

}  // namespace ingot::core::cpu
